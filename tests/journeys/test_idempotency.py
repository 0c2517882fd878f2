"""A call that is sent again under its Idempotency-Key: one answer, one fare, whatever happened in between."""

import threading
import time
from typing import Any

import httpx2
import orjson
import pytest
import redis
from openai import OpenAI
from openai.types.chat import ChatCompletion

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, connect, head, steered
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled, taken_slots

WORDS = "a secret that nobody else may read"


def send(
    gateway: Running, customer: Customer, key: str = "k", path: str = CHAT, *, stream: bool = False, **script: Any
) -> httpx2.Response:
    body: dict[str, Any] = {"model": MODEL, "stream": stream}
    said = steered(**script)
    body |= {"messages": said} if path == CHAT else {"prompt": said[0]["content"]}
    headers = {**customer.headers, "idempotency-key": key}
    return httpx2.post(gateway.url + path, json=body, headers=headers, timeout=20)


def events(town: Town, customer: Customer) -> list[tuple[str, str]]:
    wait_for(lambda: not open_holds(town.redis_url) and not taken_slots(town.redis_url))
    return [(event.verdict, event.reason) for event in settled(town.redis_url, customer)]


def error_code(answer: httpx2.Response) -> Any:
    return answer.json()["error"]["code"]


@pytest.mark.parametrize("stream", [False, True])
def test_sent_again_it_has_the_same_answer_and_receipt_and_no_second_fare(
    shared: Town, standing_engine: StandInEngine, stream: bool
) -> None:
    """superdesigndev/treg#86: agents retry, and a lost answer was billed twice."""
    gateway, customer = shared.gateway(), shared.key("free")
    first = send(gateway, customer, stream=stream, chunks=5)
    again = send(gateway, customer, stream=stream, chunks=5)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    of_the_answer = {"x-request-id", "content-type", "x-faregate-fare", "x-faregate-remaining", "ratelimit", "x-faregate-reset"}
    assert {name: again.headers[name] for name in of_the_answer} == {name: first.headers[name] for name in of_the_answer}
    assert "x-faregate-replayed" not in first.headers
    assert again.headers["x-faregate-replayed"] == "true"
    assert again.headers.get_list("x-request-id") == [first.headers["x-request-id"]]
    assert events(shared, customer) == [("posted", "answered")]
    assert len(standing_engine.journal()["requests"]) == 1


def test_another_body_path_or_model_of_the_same_key_is_422(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    assert send(gateway, customer).status_code == 200
    others = [send(gateway, customer, chunks=9), send(gateway, customer, stream=True)]
    for answer in (*others, send(gateway, customer, path="/v1/completions")):
        assert (answer.status_code, error_code(answer)) == (422, "idempotency_key_reused")
        assert answer.headers["x-should-retry"] == "false"
    assert events(shared, customer) == [("posted", "answered")]


def test_while_the_first_runs_it_is_409_and_the_sdk_comes_back_for_the_answer(
    shared: Town, standing_engine: StandInEngine
) -> None:
    gateway, customer = shared.gateway(), shared.key()
    first: list[httpx2.Response] = []
    running = threading.Thread(target=lambda: first.append(send(gateway, customer, delay_ms=800)))
    running.start()
    standing_engine.wait_for(lambda journal: journal["running"] == 1)
    again = send(gateway, customer, delay_ms=800)
    assert (again.status_code, error_code(again)) == (409, "idempotency_key_in_use")
    assert 1 <= int(again.headers["retry-after"]) <= 5
    with OpenAI(base_url=f"{gateway.url}/v1", api_key=customer.token) as client:
        found = client.post(
            "/chat/completions",
            body={"model": MODEL, "stream": False, "messages": steered(delay_ms=800)},
            options={"headers": {"Idempotency-Key": "k"}},
            cast_to=ChatCompletion,
        )
    running.join()
    assert found.id == first[0].json()["id"]
    assert events(shared, customer) == [("posted", "answered")]


@pytest.mark.parametrize(
    ("script", "stream", "status"),
    [
        ({"status": 500}, False, 502),
        ({"status": 400}, False, 400),
        ({"die_after": 0}, True, 502),
        ({"error_after": 2, "pace_ms": 10}, True, 200),
        ({"empty": True}, False, 200),
    ],
)
def test_what_was_not_billed_may_run_again(
    shared: Town, standing_engine: StandInEngine, script: dict[str, Any], stream: bool, status: int
) -> None:
    gateway, customer = shared.gateway(), shared.key()
    for _ in range(2):
        answer = send(gateway, customer, stream=stream, **script)
        assert answer.status_code == status
        assert "x-faregate-replayed" not in answer.headers
    assert send(gateway, customer).status_code == 200
    assert [verdict for verdict, _ in events(shared, customer)] == ["voided", "voided", "posted"]


@pytest.mark.parametrize("script", [{"hang": True}, {"chunks": 50, "pace_ms": 20}])
def test_a_client_that_left_may_ask_anew(shared: Town, standing_engine: StandInEngine, script: dict[str, Any]) -> None:
    gateway, customer = shared.gateway(), shared.key()
    body = orjson.dumps({"model": MODEL, "stream": True, "messages": steered(**script)})
    with connect(gateway) as client:
        client.sendall(head(customer, "idempotency-key: k", f"content-length: {len(body)}") + body)
        if "chunks" in script:
            client.recv(100)
        else:
            standing_engine.wait_for(lambda journal: journal["running"] == 1)
    wait_for(lambda: not open_holds(shared.redis_url))
    assert send(gateway, customer, chunks=2).status_code == 200


def test_a_key_that_was_refused_by_the_limits_is_free(shared: Town) -> None:
    plan = shared.plan("two", quota_per_day=1)
    gateway, customer = shared.gateway(), shared.key(plan.code)
    assert send(gateway, customer, "first").status_code == 200
    refused = send(gateway, customer, "second")
    assert (refused.status_code, error_code(refused)) == (429, "insufficient_quota")
    # The one fare of the day bought this answer: it is given again although nothing is left.
    assert send(gateway, customer, "first").headers["x-faregate-replayed"] == "true"
    assert error_code(send(gateway, customer, "second")) == "insufficient_quota"


def test_a_key_is_its_api_keys_alone(shared: Town) -> None:
    gateway, one, other = shared.gateway(), shared.key(), shared.key()
    first, second = send(gateway, one), send(gateway, other)
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert "x-faregate-replayed" not in second.headers


def test_a_revoked_key_is_given_nothing_again(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    assert send(gateway, customer).status_code == 200
    shared.revoke(customer)
    wait_for(lambda: send(gateway, customer).status_code == 401)


def test_an_answer_over_the_limit_is_not_kept_and_does_not_run_again(shared: Town, standing_engine: StandInEngine) -> None:
    gateway, customer = shared.gateway(), shared.key()
    first = send(gateway, customer, text="x" * 600_000, chunks=2)
    assert (first.status_code, len(first.content) > 1_000_000) == (200, True)
    again = send(gateway, customer, text="x" * 600_000, chunks=2)
    assert (again.status_code, error_code(again)) == (422, "idempotent_answer_not_kept")
    assert first.headers["x-request-id"] in again.json()["error"]["message"]
    assert len(standing_engine.journal()["requests"]) == 1
    assert events(shared, customer) == [("posted", "answered")]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "schlüssel"])
def test_a_key_that_is_none_is_400(shared: Town, key: str) -> None:
    customer = shared.key()
    body = orjson.dumps({"model": MODEL, "messages": steered()})
    with connect(shared.gateway()) as client:
        client.sendall(head(customer, f"idempotency-key: {key}", f"content-length: {len(body)}", "connection: close") + body)
        answer = b""
        while data := client.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"invalid_idempotency_key" in answer


def test_neither_question_nor_answer_nor_key_can_be_read_in_valkey(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    assert WORDS in send(gateway, customer, "my-own-key", text=WORDS).text
    with redis.Redis.from_url(shared.redis_url) as client:
        names = list(client.scan_iter("*:i:*"))
        everything = b"".join(repr(client.hgetall(name)).encode() for name in names) + b"".join(names)
        assert all(0 < client.ttl(name) <= 3600 for name in names)
    assert len(names) >= 1
    for hidden in (WORDS, "my-own-key", "chatcmpl", customer.token):
        assert hidden.encode() not in everything


def test_a_gateways_death_gives_its_keys_to_others(shared: Town, standing_engine: StandInEngine) -> None:
    dying, living, customer = shared.gateway(lease_ms=1000), shared.gateway(lease_ms=1001), shared.key()

    def lost() -> None:
        with pytest.raises(httpx2.HTTPError):
            send(dying, customer, delay_ms=1500)

    waiting = threading.Thread(target=lost)
    waiting.start()
    standing_engine.wait_for(lambda journal: journal["running"] == 1)
    dying.kill()
    waiting.join()
    assert error_code(send(living, customer, delay_ms=1500)) == "idempotency_key_in_use"
    answers: list[httpx2.Response] = []
    while not answers or answers[-1].status_code == 409:
        answers.append(send(living, customer, delay_ms=1500))
        time.sleep(0.2)
    assert answers[-1].status_code == 200
    assert events(shared, customer) == [("expired", "gateway_died"), ("posted", "answered")]
