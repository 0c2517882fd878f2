"""One call through the whole gateway: answered, receipted, settled; and every other way out."""

import json
import re
from typing import Any

import httpx2
import orjson
import pytest
from openai import OpenAI

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import Settled, open_holds, settled, taken_slots

UUID7 = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")


def chat(script: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    content = "hi" if script is None else "@engine " + json.dumps(script)
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}


def post(gateway: Running, customer: Customer, body: Any, path: str = "/v1/chat/completions") -> httpx2.Response:
    return httpx2.post(gateway.url + path, json=body, headers=customer.headers, timeout=20)


def only_event(town: Town) -> Settled:
    """The single event there is, once nothing is held any more."""
    [customer] = town.customers
    wait_for(lambda: settled(town.redis_url, customer) and not open_holds(town.redis_url))
    [event] = settled(town.redis_url, customer)
    wait_for(lambda: taken_slots(town.redis_url) == 0)
    return event


def test_the_openai_sdk_streams_and_does_not_stream(shared: Town) -> None:
    gateway = shared.gateway()
    with OpenAI(base_url=f"{gateway.url}/v1", api_key=shared.key("free").token) as client:
        whole = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        assert whole.choices[0].message.content == "tok tok tok "
        stream = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "tok tok tok "
        assert client.completions.create(model=MODEL, prompt="hi").choices[0].text


def test_an_answer_carries_its_receipt_and_becomes_one_event(shared: Town) -> None:
    answer = post(shared.gateway(), shared.key("free"), chat())
    assert answer.status_code == 200
    assert answer.headers["x-faregate-fare"] == "1"
    assert answer.headers["x-faregate-remaining"] == "59"
    assert answer.headers["x-ratelimit-limit-requests"] == "60"
    assert answer.headers["ratelimit"].startswith('"daily";r=59;t=')
    assert UUID7.match(answer.headers["x-request-id"])
    event = only_event(shared)
    assert (event.id, event.verdict, event.reason) == (answer.headers["x-request-id"], "posted", "answered")
    assert event.event["completion_tokens"] == answer.json()["usage"]["completion_tokens"]
    assert event.event["status"] == 200
    assert event.event["replica"] == "stand-in"


def test_a_stream_is_relayed_as_the_engine_sent_it_less_the_usage_that_was_not_asked_for(
    shared: Town, standing_engine: StandInEngine
) -> None:
    gateway, customer = shared.gateway(), shared.key()
    plain = post(gateway, customer, chat({"chunks": 20}, stream=True))
    assert plain.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert plain.headers["x-faregate-remaining"] == "unlimited"
    direct = httpx2.post(
        f"{standing_engine.url}/v1/chat/completions",
        json=chat({"chunks": 20}, stream=True, stream_options={"include_usage": True}),
    )
    ours, theirs = (re.sub(r'"id":"[^"]*"|"created":\d+', "", text) for text in (plain.text, direct.text))
    assert '"usage":{' in theirs
    assert ours.split("\n\n") == [frame for frame in theirs.split("\n\n") if '"usage":{' not in frame]
    assert only_event(shared).event["completion_tokens"] == 20


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"])
def test_the_first_words_come_at_once_and_no_hop_is_to_hold_them_back(shared: Town, path: str) -> None:
    """The engine falls silent after its first words: what waited for more of them would never come."""
    prompt = chat({"chunks": 9, "hang_after": 1})["messages"]
    text = prompt[0]["content"]
    asked = {"/v1/completions": {"prompt": text}, "/v1/responses": {"input": text}}.get(path, {"messages": prompt})
    body = {"model": MODEL, "stream": True, "max_tokens": 9, **asked}
    headers = shared.key().headers
    with httpx2.stream("POST", shared.gateway().url + path, json=body, headers=headers, timeout=5) as answer:
        got = ""
        for part in answer.iter_text():
            got += part
            if '"tok "' in got:
                break
    assert '"tok "' in got
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "content-length" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("script", "status", "code", "reason"),
    [
        ({"status": 500}, 502, "engine_failed", "engine_broke"),
        ({"status": 503}, 503, "server_is_overloaded", "no_capacity"),
        ({"status": 400}, 400, None, "engine_refused"),
        ({"status": 404}, 502, "engine_failed", "engine_broke"),
        ({"die_after": 0}, 502, "engine_failed", "engine_broke"),
        ({"garbage": True}, 502, "engine_failed", "engine_broke"),
    ],
)
def test_an_engine_that_fails_before_output_is_a_status_and_is_not_billed(
    shared: Town, script: dict[str, Any], status: int, code: str | None, reason: str, stream: bool
) -> None:
    answer = post(shared.gateway(), shared.key("free"), chat(script, stream=stream))
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert ("retry-after" in answer.headers) == (status == 503)
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", reason)
    assert event.event["status"] == status


@pytest.mark.parametrize("script", [{"error_frame_first": True}, {"no_finish": True, "chunks": 0}])
def test_a_stream_that_fails_before_output_still_has_a_status(shared: Town, script: dict[str, Any]) -> None:
    answer = post(shared.gateway(), shared.key(), chat(script, stream=True))
    assert answer.status_code == 502
    assert only_event(shared).verdict == "voided"


@pytest.mark.parametrize(
    "script", [{"die_after": 2, "pace_ms": 20}, {"error_after": 2, "pace_ms": 20}, {"no_finish": True, "pace_ms": 20}]
)
def test_a_stream_that_the_engine_breaks_says_so_and_is_not_billed(shared: Town, script: dict[str, Any]) -> None:
    answer = post(shared.gateway(), shared.key(), chat(script, stream=True))
    assert answer.status_code == 200
    *_, error, done, end = answer.text.split("\n\n")
    assert orjson.loads(error.removeprefix("data: "))["error"]["code"] == "engine_failed"
    assert (done, end) == ("data: [DONE]", "")
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_answer_is_delivered_and_not_billed(shared: Town, stream: bool) -> None:
    answer = post(shared.gateway(), shared.key(), chat({"empty": True}, stream=stream))
    assert answer.status_code == 200
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "empty_answer")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", [{"tool": True}, {"reasoning": True}, {"split": True}])
def test_tools_reasoning_and_odd_packets_are_answers(shared: Town, script: dict[str, Any], stream: bool) -> None:
    answer = post(shared.gateway(), shared.key(), chat(script, stream=stream))
    assert answer.status_code == 200
    assert only_event(shared).verdict == "posted"


def test_a_void_gives_the_fare_back(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key("free")
    assert post(gateway, customer, chat({"status": 500})).headers["x-faregate-remaining"] == "59"
    only_event(shared)
    assert post(gateway, customer, chat()).headers["x-faregate-remaining"] == "59"
    assert post(gateway, customer, chat()).headers["x-faregate-remaining"] == "58"


def test_a_slow_engine_is_given_up_and_not_billed(shared: Town, standing_engine: StandInEngine) -> None:
    gateway = shared.gateway(total_seconds=0.5)
    answer = post(gateway, shared.key(), chat({"hang": True}))
    assert answer.status_code == 504
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "timed_out")
    standing_engine.wait_for(lambda journal: journal["running"] == 0)


def test_a_total_time_out_after_output_ends_the_stream_as_length_and_is_billed(shared: Town) -> None:
    gateway = shared.gateway(total_seconds=0.6)
    answer = post(gateway, shared.key(), chat({"chunks": 100, "pace_ms": 50}, stream=True))
    *_, last, done, _ = answer.text.split("\n\n")
    assert orjson.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    assert done == "data: [DONE]"
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("posted", "answered")
    assert event.event["tokens_estimated"] is True


def test_a_stream_that_waits_long_is_kept_warm_and_then_answered(shared: Town) -> None:
    gateway = shared.gateway(commit_seconds=0.2)
    answer = post(gateway, shared.key(), chat({"delay_ms": 600}, stream=True))
    assert answer.text.startswith(": waiting\n\n")
    assert answer.text.endswith("data: [DONE]\n\n")
    assert only_event(shared).verdict == "posted"


def test_a_failure_after_the_commit_is_a_frame(shared: Town) -> None:
    gateway = shared.gateway(commit_seconds=0.1)
    answer = post(gateway, shared.key(), chat({"delay_ms": 400, "status": 500}, stream=True))
    assert answer.status_code == 200
    assert '"code":"engine_failed"' in answer.text
    assert answer.text.endswith("data: [DONE]\n\n")
    assert only_event(shared).verdict == "voided"


def test_no_client_header_reaches_an_engine_and_no_engine_field_does(shared: Town, standing_engine: StandInEngine) -> None:
    gateway, customer = shared.gateway(), shared.key()
    evil = {"X-Vllm-Priority": "-5", "X-data-parallel-rank": "1", "X-Session-ID": "s", "X-Engine-Script": "{}", "Cookie": "a=b"}
    answer = httpx2.post(
        f"{gateway.url}/v1/chat/completions",
        json=chat(priority=-9, cache_salt="x", kv_transfer_params={}, vllm_xargs={}, top_k=5),
        headers={**customer.headers, **evil},
    )
    assert answer.status_code == 200
    [request] = standing_engine.journal()["requests"]
    names = {name.lower() for name, _ in request["headers"]} if isinstance(request["headers"], list) else set(request["headers"])
    assert {name.lower() for name in names} == {"host", "content-type", "accept", "content-length"}
    body = request["body"] if isinstance(request["body"], dict) else json.loads(request["body"])
    assert set(body) == {"model", "messages", "top_k", "cache_salt"}
    assert body["cache_salt"] != "x"  # ours
    assert customer.token not in json.dumps(request)
