"""Where one kind of engine breaks the order of Anthropic's events, and how it is mended; the others' pass as they came."""

from typing import Any

Event = dict[str, Any]
# llama.cpp b11549, as recorded in tests/recordings: it says "end_turn" beside the stop sequence that ended the answer, begins a
# call without `input`, and closes the blocks of several calls only when all are written.
NEEDS_REPAIRS = frozenset({"llamacpp"})


def mended(event: Event, open_block: int | None) -> list[Event] | None:
    """What is sent instead of an event; None: the event as it came. `open_block` is the one before it."""
    kind = event["type"]
    if kind == "content_block_start":
        return _begun(event, open_block)
    if kind == "content_block_stop" and event.get("index") != open_block:
        return []  # we closed it when the next one began
    if kind == "message_delta" and isinstance(event.get("delta"), dict) and name_stop_sequence(event["delta"]):
        return [event]
    return None


def _begun(event: Event, open_block: int | None) -> list[Event] | None:
    block = event.get("content_block") or {}
    lacks_input = block.get("type") == "tool_use" and "input" not in block
    if lacks_input:
        event = {**event, "content_block": {**block, "input": {}}}
    if open_block is not None:
        return [{"type": "content_block_stop", "index": open_block}, event]
    return [event] if lacks_input else None


def name_stop_sequence(ending: dict[str, Any]) -> bool:
    """Of an answer or of its last delta, in place; whether it was needed."""
    if ending.get("stop_sequence") is None or ending.get("stop_reason") != "end_turn":
        return False
    ending["stop_reason"] = "stop_sequence"
    return True
