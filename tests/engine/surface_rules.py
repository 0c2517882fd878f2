"""Which rules of the clients an engine's Responses, Messages and error answers break, by name."""

from collections.abc import Iterator
from typing import Any

from tests.engine.frames import Event, events
from tests.recordings.recording import Answer, Call

TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
# What Anthropic's own API says was wrong; its SDKs make their exceptions of the status, and people read these.
ANTHROPIC_ERRORS = frozenset(
    {"invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large",
     "rate_limit_error", "api_error", "overloaded_error"}
)  # fmt: skip


def broken_by_response_stream(answer: Answer) -> set[str]:
    found = events(answer.body)
    data = [event.data for event in found if event.data != "[DONE]"]
    broken = set()
    if any(not event.name for event in found):
        broken.add("event-unnamed")
    # One of these may be said again and again, to keep a silent line open.
    numbers = [each.get("sequence_number") for each in data if each.get("type") != "response.in_progress"]
    if None in numbers or numbers != sorted(set(numbers)):
        broken.add("sequence-number-missing")
    if any(".output" in each.get("type", "") and "output_index" not in each for each in data):
        broken.add("output-index-missing")
    if data[-1].get("type") not in TERMINAL:
        return broken | {"terminal-event-missing"}
    return broken | set(_last_response(data[-1]))


def _last_response(last: dict[str, Any]) -> Iterator[str]:
    response = last["response"]
    if response.get("status") == "incomplete" and last["type"] != "response.incomplete":
        yield "cut-answer-completed"
    if not response.get("usage"):
        yield "usage-missing"


def broken_by_response(call: Call, answer: Answer) -> set[str]:
    """What was cut at its limit has to say so."""
    body = answer.json()
    was_cut = body["usage"]["output_tokens"] >= call.body.get("max_output_tokens", 1 << 30)
    return {"cut-answer-completed"} if was_cut and body["status"] == "completed" else set()


def broken_by_message_stream(call: Call, answer: Answer) -> set[str]:
    # A ping may stand anywhere.
    found = [event for event in events(answer.body) if event.name != "ping"]
    if any(event.name != event.data.get("type") for event in found):
        return {"event-unnamed"}
    if found[0].name == "error":
        return {"refused-inside-the-stream"}
    if found[-1].name == "error":
        return {"error-not-anthropics"} if found[-1].data["error"]["type"] not in ANTHROPIC_ERRORS else set()
    return set(_message_events(call, found))


def _message_events(call: Call, found: list[Event]) -> Iterator[str]:
    if found[0].name != "message_start" or found[-1].name != "message_stop":
        yield "message-not-framed"
    if not found[0].data["message"]["id"].startswith("msg_"):
        yield "message-id-of-another-surface"
    (delta,) = [event.data for event in found if event.name == "message_delta"]
    if "input_tokens" not in delta["usage"]:
        yield "last-usage-without-input"
    yield from _stopped(delta["delta"])
    yield from _blocks(found)


def _blocks(found: list[Event]) -> Iterator[str]:
    """Anthropic's blocks follow each other; none begins before the last one has ended."""
    is_open = False
    for event in found:
        if event.name == "content_block_start":
            if is_open:
                yield "blocks-overlap"
            is_open = True
        elif event.name == "content_block_stop":
            is_open = False


def broken_by_message(answer: Answer) -> set[str]:
    body = answer.json()
    broken = set() if body["id"].startswith("msg_") else {"message-id-of-another-surface"}
    if "stop_sequence" not in body:
        broken.add("stop-sequence-missing")
    return broken | set(_stopped(body))


def _stopped(said: dict[str, Any]) -> Iterator[str]:
    if said.get("stop_sequence") and said["stop_reason"] != "stop_sequence":
        yield "stop-sequence-said-otherwise"


def broken_by_error(call: Call, answer: Answer) -> set[str]:
    """A refusal: OpenAI's envelope has four keys, Anthropic's a type outside."""
    body = answer.json()
    if "/messages" in call.path:
        is_anthropics = body.get("type") == "error" and body["error"]["type"] in ANTHROPIC_ERRORS
        return set() if is_anthropics else {"error-not-anthropics"}
    error = body.get("error")
    if not isinstance(error, dict):
        return {"error-without-envelope"}
    broken = {"error-keys-missing"} if not {"message", "type", "param", "code"} <= error.keys() else set()
    if isinstance(error.get("code"), int):
        broken.add("error-code-a-number")
    return broken
