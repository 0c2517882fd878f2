"""Which rules of the clients an engine's chat or text completion breaks, by name; all of them were measured with real clients."""

import json
from collections.abc import Iterator
from typing import Any

from tests.engine.frames import events
from tests.recordings.recording import Answer, Call

FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


def broken_by_stream(call: Call, answer: Answer) -> set[str]:
    """A stream that was accepted."""
    found = [event.data for event in events(answer.body)]
    failed = any(data != "[DONE]" and "error" in data for data in found)
    chunks = [data for data in found if data != "[DONE]" and "error" not in data]
    broken = {"no-done"} if found[-1] != "[DONE]" else set()
    if failed:
        return broken
    return broken | set(_usage(call, chunks)) | set(_chunks(call, chunks))


def broken_by_whole(call: Call, answer: Answer) -> set[str]:
    """An answer in one piece."""
    body = answer.json()
    broken = {f"{field}-missing" for field in ("id", "model") if not body.get(field)}
    if body.get("object") != ("chat.completion" if _is_chat(call) else "text_completion"):
        broken.add("object-wrong")
    if type(body.get("created")) is not int:
        broken.add("created-no-integer")
    for choice in body["choices"]:
        broken |= set(_choice(call, choice))
    if len(body["choices"]) > _asked(call):
        broken.add("choices-more-than-asked")
    if _counts_one_choice(call, body):
        broken.add("usage-of-one-choice")
    return broken


def _usage(call: Call, chunks: list[dict[str, Any]]) -> Iterator[str]:
    options = call.body.get("stream_options") or {}
    with_usage = [chunk for chunk in chunks if chunk.get("usage")]
    if not options.get("include_usage") and with_usage:
        yield "usage-unasked"
    if options.get("include_usage") and (not with_usage or with_usage[-1]["choices"] != [] or with_usage[-1] is not chunks[-1]):
        yield "usage-not-last"
    if len(with_usage) > 1 and not options.get("continuous_usage_stats"):
        yield "usage-repeated"


def _chunks(call: Call, chunks: list[dict[str, Any]]) -> Iterator[str]:
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    if any("index" not in choice for choice in choices):
        yield "index-missing"
    if any("finish_reason" not in choice for choice in choices):
        yield "finish-reason-missing"
    indexes = sorted({choice["index"] for choice in choices})
    if len(indexes) > _asked(call):
        yield "choices-more-than-asked"
    for index in indexes:
        of_one = [choice for choice in choices if choice["index"] == index]
        yield from _finish([choice["finish_reason"] for choice in of_one])
        if _is_chat(call):
            yield from _deltas([choice["delta"] for choice in of_one], of_one[-1]["finish_reason"])


def _finish(reasons: list[str | None]) -> Iterator[str]:
    if reasons[-1] is None or any(reason is not None for reason in reasons[:-1]):
        yield "finish-reason-not-last"
    elif reasons[-1] not in FINISHES:
        yield "finish-reason-unknown"


def _deltas(deltas: list[dict[str, Any]], finish: str | None) -> Iterator[str]:
    if deltas[0].get("role") != "assistant" or any("role" in delta for delta in deltas[1:]):
        yield "role-not-first"
    if deltas[0].get("content") is None:
        yield "first-content-null"
    if any(delta.get("reasoning") for delta in deltas):
        yield "reasoning-by-another-name"
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls") or ()]
    if pieces:
        yield from _tool_pieces(pieces)
        if finish == "stop":
            yield "finish-reason-hides-tool-calls"
        if finish != "length":
            yield from _arguments([_joined(pieces, index) for index in _indexes(pieces)])


def _tool_pieces(pieces: list[dict[str, Any]]) -> Iterator[str]:
    indexes = _indexes(pieces)
    if indexes != list(range(len(indexes))):
        yield "tool-index-gap"
    for index in indexes:
        first, *later = [piece for piece in pieces if piece["index"] == index]
        if not first.get("id") or first.get("type") != "function" or not first["function"].get("name"):
            yield "tool-unnamed"
        if not isinstance(first["function"].get("arguments"), str):
            yield "tool-arguments-late"
        if any("id" in piece or "name" in piece["function"] for piece in later):
            yield "tool-named-again"


def _indexes(pieces: list[dict[str, Any]]) -> list[int]:
    return list(dict.fromkeys(piece["index"] for piece in pieces))


def _joined(pieces: list[dict[str, Any]], index: int) -> str:
    return "".join(piece["function"].get("arguments") or "" for piece in pieces if piece["index"] == index)


def _arguments(found: list[Any]) -> Iterator[str]:
    for arguments in found:
        if not isinstance(arguments, str):
            yield "tool-arguments-no-string"
        elif not _is_object(arguments):
            yield "tool-arguments-no-object"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _choice(call: Call, choice: dict[str, Any]) -> Iterator[str]:
    if "index" not in choice:
        yield "index-missing"
    finish = choice.get("finish_reason")
    if finish not in FINISHES:
        yield "finish-reason-unknown"
    if not _is_chat(call):
        return
    message = choice["message"]
    if message.get("role") != "assistant":
        yield "role-missing"
    if message.get("reasoning"):
        yield "reasoning-by-another-name"
    calls = message.get("tool_calls") or []
    if any(not made.get("id") or made.get("type") != "function" for made in calls):
        yield "tool-unnamed"
    if calls and finish == "stop":
        yield "finish-reason-hides-tool-calls"
    yield from _arguments([made["function"]["arguments"] for made in calls])


def _counts_one_choice(call: Call, body: dict[str, Any]) -> bool:
    """Two answers that were each cut at the limit have twice that many tokens."""
    cut = [choice for choice in body["choices"] if choice.get("finish_reason") == "length"]
    most: int = call.body.get("max_tokens", 0)
    counted: int = body["usage"]["completion_tokens"]
    return len(cut) > 1 and counted < len(cut) * most


def _asked(call: Call) -> int:
    """So many choices; text beside a call is one of them, not two."""
    prompt = call.body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and isinstance(prompt[0], str | list) else 1
    n: int = call.body.get("n") or 1
    return n * prompts


def _is_chat(call: Call) -> bool:
    return "/chat/" in call.path
