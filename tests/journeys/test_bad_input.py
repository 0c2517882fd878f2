"""A client's mistake gets a precise 4xx that says what to change; nothing is held, nothing reaches an engine."""

import socket
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, wait_for
from tests.support.stream import open_holds, settled

HI = [{"role": "user", "content": "hi"}]


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": HI, **fields}


def test_each_mistake_has_its_own_answer(shared: Town, standing_engine: StandInEngine) -> None:
    gateway, free, pro = shared.gateway(body_limit_bytes=200_000), shared.key("free"), shared.key("pro")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    cases: list[tuple[Any, int, str | None, str]] = [
        (chat(model="smolm2-135m-instruct"), 404, "model_not_found", "smollm2-135m-instruct"),
        (chat(model="llama-3.3-70b-instruct"), 404, "model_not_found", "GET /v1/models"),
        (chat(n=2), 400, "over_plan_limit", "Free plan allows 1"),
        (chat(messages=[{"role": "user", "content": [image, image]}]), 400, "over_plan_limit", "images is 2"),
        (chat(messages=[{"role": "user", "content": "x" * 140_000}]), 400, "context_length_exceeded", "131072 bytes"),
        (chat(messages=[{"role": "user", "content": "x" * 300_000}]), 413, "request_too_large", "200000 bytes"),
        (chat(stream_options={"include_usage": True}), 400, None, "stream is true"),
        (b"{nonsense", 400, "invalid_json", "line 1"),
        (b'{"model": "a", "model": "b"}', 400, "duplicate_key", "'model'"),
        (b"\xff\xfe", 400, "invalid_utf8", "byte 0"),
        ([], 400, "invalid_json", "an array"),
    ]
    for body, status, code, words in cases:
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", headers=free.headers, **content)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code), error
        assert words in error["message"]
        assert set(error) == {"message", "type", "param", "code"}
        assert "x-request-id" in answer.headers
    assert httpx2.post(f"{gateway.url}/v1/chat/completions", headers=pro.headers, json=chat(n=4)).status_code == 200
    wait_for(lambda: open_holds(shared.redis_url) == 0 and len(settled(shared.redis_url, pro)) == 1)
    assert not settled(shared.redis_url, free)
    assert len(standing_engine.journal()["requests"]) == 1
    log = gateway.log.read_text()
    assert free.token not in log
    assert "nonsense" not in log


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "No API key"),
        ({"authorization": "Basic abc"}, "must read: Bearer"),
        ({"authorization": "Bearer"}, "must read: Bearer"),
        ({"authorization": "Bearer sk-123"}, "not spelled like one"),
        ({"authorization": "Bearer fare_live_" + "a" * 43}, "not spelled like one"),
        ({"x-api-key": "nope"}, "not spelled like one"),
    ],
)
def test_no_key_a_wrong_one_and_a_mistyped_one_are_401(shared: Town, headers: dict[str, str], words: str) -> None:
    answer = httpx2.post(f"{shared.gateway().url}/v1/chat/completions", json=chat(), headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert words in answer.json()["error"]["message"]


def test_a_key_that_does_not_exist_is_401_and_guessing_is_slowed_down(shared: Town) -> None:
    from gateway.access.keys import mint

    gateway = shared.gateway(header_seconds=9)  # one of its own: its address is slowed down for the others too
    with httpx2.Client() as client:
        answers = [
            client.post(f"{gateway.url}/v1/chat/completions", json=chat(), headers={"authorization": f"Bearer {mint()}"})
            for _ in range(60)
        ]
    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


def test_keys_are_bounded_by_model_network_and_scope(shared: Town) -> None:
    from ipaddress import ip_network

    gateway = shared.gateway()
    for terms, status, code in (
        ({"allowed_models": ["other"]}, 403, "model_not_allowed_for_key"),
        ({"networks": [ip_network("10.0.0.0/8")]}, 401, "invalid_api_key"),
        ({"scopes": ["read"]}, 403, "scope_missing"),
    ):
        customer = shared.key(**terms)
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=chat(), headers=customer.headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_wrong_paths_and_methods_say_what_is_served(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    wrong_method = httpx2.get(f"{gateway.url}/v1/chat/completions", headers=customer.headers)
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")
    assert httpx2.post(f"{gateway.url}/v1/models", headers=customer.headers).status_code == 405
    wrong_path = httpx2.post(f"{gateway.url}/v1/images/generations", headers=customer.headers, json={})
    assert wrong_path.status_code == 404
    assert "POST /v1/chat/completions" in wrong_path.json()["error"]["message"]
    for path in ("/v1/../v1/chat/completions", "/v1/%2e%2e/metrics", "/metrics"):
        assert httpx2.get(gateway.url + path, headers=customer.headers).status_code in (404, 405)


def test_a_content_type_that_is_not_json_is_415(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    headers = {**customer.headers, "content-type": "text/plain"}
    assert httpx2.post(f"{gateway.url}/v1/chat/completions", headers=headers, content=b"{}").status_code == 415


def test_a_declared_gigabyte_is_refused_before_it_is_sent(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as client:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {customer.token}\r\n"
        client.sendall(f"{head}content-length: 1073741824\r\n\r\n{{".encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 413")


def test_the_model_list_tells_tier_fare_and_context(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key("free")
    page = httpx2.get(f"{gateway.url}/v1/models", headers=customer.headers).json()
    [card] = page["data"]
    assert (card["id"], card["object"], card["tier"], card["fare"], card["available"]) == (MODEL, "model", "free", 1, True)
    assert httpx2.get(f"{gateway.url}/v1/models/{MODEL}", headers=customer.headers).json() == card
    assert httpx2.get(f"{gateway.url}/v1/models/nope", headers=customer.headers).status_code == 404
    assert "Traceback" not in gateway.log.read_text()
    assert httpx2.get(f"{gateway.url}/v1/models").status_code == 401
