"""Whatever an engine says, in each dialect: the call ends as each API ends, is not billed, and is nobody's crash."""

import contextlib
import json
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, HI, chat, send, steered
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled, taken_slots

MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
INPUTS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input", "/v1/completions": "prompt"}


def frames(*events: dict[str, Any]) -> str:
    return "".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events])


@pytest.fixture(scope="module")
def customer(faregate: Town) -> Customer:
    """One for all: what one account's calls meet closes no engine to the others."""
    return faregate.key()


def ask(gateway: Running, town: Town, customer: Customer, path: str, says: str, **fields: Any) -> tuple[httpx2.Response, Any]:
    known = len(settled(town.redis_url, customer))
    said: Any = steered(says=says, pace_ms=15)
    if path == "/v1/completions":
        said = said[0]["content"]
    body = {"model": MODEL, INPUTS[path]: said, "max_tokens": 5, **fields}
    answer = httpx2.post(gateway.url + path, headers=customer.headers, json=body, timeout=10)
    wait_for(lambda: len(settled(town.redis_url, customer)) > known)
    return answer, max(settled(town.redis_url, customer), key=lambda end: end.id)


WHOLE = [
    (CHAT, {"choices": [{"message": 5, "finish_reason": []}]}),
    (CHAT, {"choices": "none"}),
    (MESSAGES, {"content": [5, None], "usage": []}),
    (MESSAGES, {"content": {"type": "text"}}),
    (RESPONSES, {"status": [], "output": []}),
    (RESPONSES, {"status": "completed", "output": [5]}),
    (RESPONSES, {"status": "completed", "output": [{"type": "message", "content": [[]]}]}),
]


@pytest.mark.parametrize(("path", "says"), WHOLE)
def test_an_answer_of_an_unknown_shape_is_the_engines_fault_or_empty(
    faregate: Town, gateway: Running, customer: Customer, path: str, says: dict[str, Any]
) -> None:
    """Some were a 500 of ours, and the engine that sent them was thought well."""
    answer, end = ask(gateway, faregate, customer, path, json.dumps(says))
    assert (answer.status_code, end.reason) in ((502, "engine_broke"), (200, "empty_answer"))
    assert end.verdict == "voided"


STARTED = {"type": "message_start", "message": {"id": "m", "usage": {}}}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "tok"}}
CREATED = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
TOKEN = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "tok"}
STREAMS = [
    (MESSAGES, STARTED, DELTA, {"type": "content_block_start", "content_block": 5}),
    (MESSAGES, STARTED, DELTA, {"type": "message_delta", "delta": 5}),
    (MESSAGES, STARTED, DELTA, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    (RESPONSES, CREATED, TOKEN, {"type": "response.completed", "response": {"status": {}}}),
    (RESPONSES, CREATED, TOKEN, {"type": "response.output_item.done", "item": 5}),
]


@pytest.mark.parametrize(("path", "events"), [(path, events) for path, *events in STREAMS])
def test_a_stream_that_turns_to_nonsense_ends_as_its_api_ends_a_failure(
    faregate: Town, gateway: Running, customer: Customer, path: str, events: list[dict[str, Any]]
) -> None:
    answer, end = ask(gateway, faregate, customer, path, frames(*events), stream=True)
    assert answer.status_code == 200
    assert (end.verdict, end.reason) == ("voided", "engine_broke")
    told = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert told[-1]["type"] == "error"
    if path == RESPONSES:
        assert told[-2]["type"] == "response.failed"
    assert answer.text.endswith("\n\n")


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, "/v1/completions"])
@pytest.mark.parametrize("says", ["", ": nothing\n\n", "data: 5\n\n", "data: {}\n\n", 'data: {"a":', "\x00\xff"])
def test_a_stream_of_nothing_is_an_error_with_a_status(
    faregate: Town, gateway: Running, customer: Customer, path: str, says: str
) -> None:
    answer, end = ask(gateway, faregate, customer, path, says, stream=True)
    assert (answer.status_code, end.verdict) == (502, "voided")


def test_prompts_beside_messages_are_no_business_of_a_chats(gateway: Running, customer: Customer) -> None:
    """An empty list of them was a 500."""
    body = chat(stream=True, prompt=[])
    answer = httpx2.post(gateway.url + CHAT, headers=customer.headers, content=body, timeout=10)
    assert (answer.status_code, answer.text[-8:]) == (200, "[DONE]\n\n")


def test_nothing_is_left_of_streams_that_clients_leave_at_any_moment(
    faregate: Town, gateway: Running, customer: Customer
) -> None:
    for number in range(30):
        stream = number % 2 == 0
        body = chat(stream=stream, messages=steered(delay_ms=number * 2, chunks=5, pace_ms=3) if number % 3 else HI)
        with send(gateway, customer, body) as client:
            client.settimeout(0.001 * (number % 7) + 0.001)
            with contextlib.suppress(TimeoutError):
                client.recv(200)
    wait_for(lambda: open_holds(faregate.redis_url) == 0 and taken_slots(faregate.redis_url) == 0)
