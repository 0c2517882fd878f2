"""More than the fare pays for: caps passed, holds kept, output taken and not paid."""

import json
import time
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, HI, chat, send, steered
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled, taken_slots

FREE_OUTPUT_MAX = 2048


def post(gateway: Running, customer: Customer, path: str, **body: Any) -> httpx2.Response:
    return httpx2.post(gateway.url + path, headers=customer.headers, json={"model": MODEL, **body}, timeout=10)


def sent_to_engine(engine: StandInEngine) -> dict[str, Any]:
    body: dict[str, Any] = engine.journal()["requests"][-1]["body"]
    return body


def ends_of(faregate: Town, customer: Customer) -> list[tuple[str, str]]:
    account = str(customer.account_id)
    return [(end.verdict, end.reason) for end in settled(faregate.redis_url) if end.event["account"] == account]


def test_fields_and_headers_that_steer_an_engine_stay_here(faregate: Town, gateway: Running, engine: StandInEngine) -> None:
    customer = faregate.key("free")
    inner = ("priority", "cache_salt", "kv_transfer_params", "vllm_xargs", "request_id", "session_id", "id_slot")
    headers = {"x-vllm-priority": "-9", "x-data-parallel-rank": "3", "x-session-id": "s", "x-request-id": "mine", "cookie": "c"}
    body = {"model": MODEL, "messages": HI, **dict.fromkeys(inner, 1)}
    answer = httpx2.post(gateway.url + CHAT, headers={**customer.headers, **headers}, json=body)
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] != "mine"
    request = engine.journal()["requests"][-1]
    assert set(request["body"]) == {"model", "messages", "max_tokens", "cache_salt"}
    assert request["body"]["cache_salt"] != 1  # ours
    assert set(request["headers"]) == {"host", "content-type", "accept", "content-length"}


def test_a_second_output_field_does_not_lift_the_cap(faregate: Town, gateway: Running, engine: StandInEngine) -> None:
    customer = faregate.key("free")
    assert post(gateway, customer, "/v1/completions", prompt="x", max_completion_tokens=1, max_tokens=10**6).status_code == 200
    assert sent_to_engine(engine)["max_tokens"] <= FREE_OUTPUT_MAX


def test_no_output_limit_is_not_the_whole_context(faregate: Town, gateway: Running, engine: StandInEngine) -> None:
    customer = faregate.key("free")
    assert post(gateway, customer, "/v1/completions", prompt="x", max_tokens=None).status_code == 200
    assert (sent_to_engine(engine).get("max_tokens", 16) or 10**9) <= FREE_OUTPUT_MAX


def test_an_engines_own_names_for_counts_do_not_pass(faregate: Town, gateway: Running, engine: StandInEngine) -> None:
    customer = faregate.key("free")
    assert post(gateway, customer, CHAT, messages=HI, n_predict=10**6, n_cmpl=9).status_code == 200
    assert not {"n_predict", "n_cmpl"} & set(sent_to_engine(engine))


def test_text_that_begins_like_an_image_still_counts(faregate: Town, gateway: Running) -> None:
    customer = faregate.key("free")
    long = [{"role": "user", "content": "data:" + "x" * 300_000}]
    assert post(gateway, customer, CHAT, messages=long).status_code == 400


def stopped(at: object) -> str:
    """A chat's answer that ended before its first word, and says at what."""
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop", "stop_reason": at}
    return json.dumps({"object": "chat.completion", "choices": [choice]})


def stopped_stream(at: object) -> str:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "stop_reason": at}
    return f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"


@pytest.mark.parametrize(
    ("fields", "says", "reason"),
    [
        ({"stop": ["Yes", "No"]}, stopped("No"), "answered"),
        ({"stop": ["Yes", "No"], "stream": True}, stopped_stream("No"), "answered"),
        ({"stop_token_ids": [7, 8]}, stopped(8), "answered"),
        ({"stop_token_ids": [7, 8], "stream": True}, stopped_stream(8), "answered"),
        ({"stop_token_ids": [7, 8]}, stopped(9), "empty_answer"),  # the model's own end, as vLLM tells it of some models
        ({"stop": ["Yes", "No"]}, stopped(None), "empty_answer"),
    ],
)
def test_who_asks_for_one_word_of_many_as_stops_pays_for_the_one(
    faregate: Town, gateway: Running, fields: dict[str, Any], says: str, reason: str
) -> None:
    """The text was empty, so it was free; which of the stops had ended it stood beside it."""
    customer = faregate.key()
    answer = post(gateway, customer, CHAT, messages=steered(says=says), **fields)
    assert answer.status_code == 200
    wait_for(lambda: len(ends_of(faregate, customer)) == 1)
    assert ends_of(faregate, customer) == [("posted" if reason == "answered" else "voided", reason)]


@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_sequence_that_is_named_is_an_answer_in_anthropics_api_too(faregate: Town, gateway: Running, stream: bool) -> None:
    customer = faregate.key()
    ending = {"stop_reason": "stop_sequence", "stop_sequence": "No"}
    says = json.dumps({"type": "message", "content": [], **ending})
    if stream:
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {}}]
        events += [{"type": "message_delta", "delta": ending}, {"type": "message_stop"}]
        says = "".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events])
    body = {"messages": steered(says=says), "max_tokens": 1, "stop_sequences": ["Yes", "No"], "stream": stream}
    assert post(gateway, customer, "/v1/messages", **body).status_code == 200
    wait_for(lambda: len(ends_of(faregate, customer)) == 1)
    assert ends_of(faregate, customer) == [("posted", "answered")]


LONG = "x" * 300_000


@pytest.mark.parametrize(
    "more",
    [
        {
            "tools": [
                {"type": "function", "function": {"name": "f", "parameters": {"properties": {"image": {"description": LONG}}}}}
            ]
        },
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {LONG: {"type": "string"}}}}}]},
        {"documents": [{"title": "t", "text": LONG}]},
        {"chat_template_kwargs": {"date_string": LONG}},
        {"chat_template": LONG},
    ],
    ids=["a property named like media", "the name of a property", "documents", "words for the template", "the template"],
)
def test_all_that_an_engine_puts_into_the_prompt_counts(faregate: Town, gateway: Running, more: dict[str, Any]) -> None:
    assert post(gateway, faregate.key("free"), CHAT, messages=HI, **more).status_code == 400


def test_images_without_their_type_are_counted(faregate: Town, gateway: Running) -> None:
    """vLLM takes a part that has an image_url and no type for an image."""
    image = {"image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [image, image, image]}]
    assert post(gateway, faregate.key("free"), CHAT, messages=messages).status_code == 400


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd"])
def test_no_client_chooses_where_an_engine_connects(faregate: Town, gateway: Running, engine: StandInEngine, url: str) -> None:
    customer = faregate.key("free")
    engine.reset_journal()
    post(gateway, customer, CHAT, messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])
    assert url not in json.dumps(engine.journal()["requests"])


def test_a_client_that_stops_reading_keeps_no_hold_past_the_calls_deadline(faregate: Town) -> None:
    gateway, customer = faregate.gateway(total_seconds=1), faregate.key()
    with send(gateway, customer, chat(stream=True, messages=steered(chunks=20_000, text="y" * 1000)), 4096):
        wait_for(lambda: open_holds(faregate.redis_url) == 1)
        time.sleep(2.5)
        assert taken_slots(faregate.redis_url) == 0
        assert open_holds(faregate.redis_url) == 0


def test_a_client_that_leaves_in_the_middle_of_the_first_piece_of_output_pays(faregate: Town, gateway: Running) -> None:
    """The whole answer is one piece here: it reads all but the end, and goes."""
    customer = faregate.key()
    with send(gateway, customer, chat(stream=True, messages=steered(chunks=1, text="y" * 6_000_000)), 4096) as client:
        received = 0
        while received < 500_000:
            received += len(client.recv(65536))
    wait_for(lambda: len(ends_of(faregate, customer)) == 1)
    assert ends_of(faregate, customer) == [("posted", "left_after_output")]


def test_long_answers_that_are_not_streamed_do_not_take_the_engine_from_everyone(faregate: Town) -> None:
    gateway, slow, other = faregate.gateway(first_byte_seconds=0.3), faregate.key("free"), faregate.key()
    for _ in range(3):
        post(gateway, slow, CHAT, messages=steered(delay_ms=600))
    assert post(gateway, other, CHAT, messages=HI).status_code == 200


def test_a_client_that_stops_reading_does_not_keep_the_process(faregate: Town) -> None:
    """It did, for good: what had been written to it was waiting to leave."""
    gateway, customer = faregate.gateway(drain_seconds=0.3), faregate.key()
    with send(gateway, customer, chat(stream=True, messages=steered(chunks=20_000, text="y" * 1000)), 4096):
        wait_for(lambda: open_holds(faregate.redis_url) == 1)
        time.sleep(0.3)
        assert gateway.stop(8) == 0
