"""What answers of `/v1/responses` lack at some kinds of engine, put in: only there, event by event."""

import time
from typing import Any

from gateway.api.dialect import Question
from gateway.api.response_tools import Names, mend_name, names_to_mend

# llama.cpp (seen with b11549): no positions and numbers in events, no id on function calls, an answer that begins with three
# fields. AI SDK drops such events; openai-python's helper and the Agents SDK raise (llama.cpp#20607, openai-python#2489).
_LEAVE_OUT_FIELDS = frozenset({"llamacpp"})
_IN_CONTENT = ("response.output_text.", "response.content_part.", "response.reasoning_text.", "response.refusal.")


def repairs_for(question: Question) -> "Repairs | None":
    """None where the engine's bytes can pass."""
    names = names_to_mend(question.body, question.engine)
    fills = question.engine.name in _LEAVE_OUT_FIELDS
    return Repairs(names, question, fills=fills) if names or fills else None


class Repairs:
    """One answer's. Each says whether it changed anything."""

    def __init__(self, names: Names, question: Question, *, fills: bool) -> None:
        self._names, self._question, self._fills = names, question, fills
        self._numbers = 0
        self._indexes: dict[str, int] = {}

    def mend_event(self, event: dict[str, Any]) -> bool:
        if self._fills:
            self._position(event)
        item, response = event.get("item"), event.get("response")
        is_renamed = isinstance(item, dict) and mend_name(item, self._names)
        is_mended = isinstance(response, dict) and self.mend_response(response)
        return self._fills or is_renamed or is_mended

    def mend_response(self, response: dict[str, Any]) -> bool:
        if self._fills:
            _fill(response, self._question.body.get("model"))
            _cut(response, self._question.output_limit)
        calls = [mend_name(item, self._names) for item in response.get("output") or ()]
        return self._fills or any(calls)

    def _position(self, event: dict[str, Any]) -> None:
        kind, item = str(event.get("type")), event.get("item")
        event.setdefault("sequence_number", self._numbers)
        self._numbers += 1
        if isinstance(item, dict):
            _identify(item)
        key = item.get("id") if isinstance(item, dict) else event.get("item_id")
        if key is not None:
            event.setdefault("output_index", self._indexes.setdefault(key, len(self._indexes)))
        if kind.startswith(_IN_CONTENT):
            event.setdefault("content_index", 0)
        if kind.startswith("response.output_text."):
            event.setdefault("logprobs", [])
        if isinstance(part := event.get("part"), dict):
            part.setdefault("annotations", [])


def _fill(response: dict[str, Any], model: object) -> None:
    """What SDKs read of an answer without asking whether it is there."""
    defaults = {
        "created_at": int(time.time()), "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "model": model, "output": [], "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [],
        "top_p": None,
    }  # fmt: skip
    for name, value in defaults.items():
        response.setdefault(name, value)
    for item in response["output"]:
        _identify(item)
    if isinstance(usage := response.get("usage"), dict):
        usage.setdefault("output_tokens_details", {"reasoning_tokens": 0})


def _cut(response: dict[str, Any], limit: int | None) -> None:
    """llama.cpp calls every answer completed; one that has as many tokens as it may have was cut."""
    usage = response.get("usage")
    written = usage.get("output_tokens") if isinstance(usage, dict) else None
    if limit is not None and isinstance(written, int) and written >= limit and response.get("status") == "completed":
        response["status"], response["incomplete_details"] = "incomplete", {"reason": "max_output_tokens"}


def _identify(item: dict[str, Any]) -> None:
    """A call without an id gets that of its call, which is what llama.cpp's deltas name it by."""
    if item.get("id") is None and item.get("call_id") is not None:
        item["id"] = item["call_id"]
