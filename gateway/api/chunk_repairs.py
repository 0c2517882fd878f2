"""What engines break of the shapes that clients of chat count on, mended in place, choice by choice (docs/edits.md); pure."""

from types import MappingProxyType
from typing import Any

import orjson

from gateway.api.sse import StreamBroke

# Clients go round for ever on a reason that they don't know. What is not here is an engine's own word for "stop".
_FINISHES = MappingProxyType(
    {
        "length": "length",
        "max_tokens": "length",
        "content_filter": "content_filter",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
    }
)
_BROKEN = frozenset({"abort", "aborted", "cancelled", "canceled", "error", "timeout"})
_SAYS_SOMETHING = ("tool_calls", "reasoning_content", "reasoning", "function_call", "refusal", "audio")


class ChunkRepairs:
    """Those of one stream: it has to be known which calls began, and which of them have no arguments yet."""

    __slots__ = ("_bare", "_calls")

    def __init__(self) -> None:
        self._calls: dict[int, set[int]] = {}
        self._bare: dict[int, set[int]] = {}

    def may_pass(self, frames: bytes) -> bool:
        """Whether frames with pieces of tool calls in them can go as they are: no call begins here, none is bare, none has its
        name or type said twice."""
        return bool(self._calls) and not self._bare and b'"type"' not in frames and b'"name"' not in frames

    def mend(self, choice: dict[str, Any], index: int, *, is_first: bool) -> bool:
        """Whether anything was changed. Raises: StreamBroke, where the reason to finish is that the engine gave up."""
        is_mended = False
        if "text" not in choice:
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                delta = choice["delta"] = {}
                is_mended = True
            is_mended |= is_first and _introduce(delta)
            if isinstance(calls := delta.get("tool_calls"), list):
                is_mended |= self._mend_calls(index, calls)
        if choice.get("finish_reason"):
            is_mended |= self._finish(index, choice)
        return is_mended

    def _mend_calls(self, index: int, calls: list[Any]) -> bool:
        known, is_mended = self._calls.setdefault(index, set()), False
        for at, call in enumerate(calls):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            if type(call.get("index")) is not int:
                call["index"], is_mended = at, True
            name = call["index"]
            if name not in known:
                known.add(name)
                self._bare.setdefault(index, set()).add(name)
                is_mended |= function.get("arguments") is None
                function["arguments"] = "" if function.get("arguments") is None else function["arguments"]
            else:
                is_mended |= _say_once(call, function)
            is_mended |= _stringify(function)
            if function.get("arguments"):
                self._has_arguments(index, name)
        return is_mended

    def _has_arguments(self, index: int, name: int) -> None:
        if bare := self._bare.get(index):
            bare.discard(name)
            if not bare:
                del self._bare[index]

    def _finish(self, index: int, choice: dict[str, Any]) -> bool:
        given = choice["finish_reason"]
        choice["finish_reason"] = reason = standard_finish(given, has_called=bool(self._calls.get(index)))
        bare = self._bare.pop(index, None)
        if not bare or reason != "tool_calls":
            return bool(reason != given)
        delta = choice["delta"]
        delta["tool_calls"] = [
            *(delta.get("tool_calls") or ()),
            *({"index": name, "function": {"arguments": "{}"}} for name in sorted(bare)),
        ]
        return True


def mend_whole(choice: dict[str, Any], reasoning_field: str) -> bool:
    """One choice of an answer that was not streamed. Raises: StreamBroke."""
    message, is_mended, calls = choice.get("message"), False, None
    if isinstance(message, dict):
        if not message.get("role"):
            message["role"], is_mended = "assistant", True
        if reasoning_field != "reasoning_content" and message.get(reasoning_field) and not message.get("reasoning_content"):
            message["reasoning_content"], is_mended = message.pop(reasoning_field), True
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                is_mended |= _stringify(function)
                if not function.get("arguments"):
                    function["arguments"], is_mended = "{}", True
    if given := choice.get("finish_reason"):
        choice["finish_reason"] = standard_finish(given, has_called=bool(calls))
        is_mended |= choice["finish_reason"] != given
    return is_mended


def standard_finish(reason: object, *, has_called: bool) -> str:
    """One of the four that clients know: who called a tool has finished by that, who called none has not.

    Raises: StreamBroke, when the engine gave up.
    """
    word = reason if isinstance(reason, str) else "stop"
    if word in _BROKEN:
        raise StreamBroke("the engine gave up in the middle of its answer")
    found = _FINISHES.get(word, "stop")
    if found in ("stop", "tool_calls"):
        return "tool_calls" if has_called else "stop"
    return found


def _introduce(delta: dict[str, Any]) -> bool:
    """A choice's first delta says whose words come, and has content even when that is none yet."""
    is_mended = False
    if not delta.get("role"):
        delta["role"], is_mended = "assistant", True
    if delta.get("content") is None and not any(delta.get(part) for part in _SAYS_SOMETHING):
        delta["content"], is_mended = "", True
    return is_mended


def _say_once(call: dict[str, Any], function: dict[str, Any]) -> bool:
    """What a call's first delta has said, later ones don't: clients put the pieces together."""
    repeated = [holder for holder, field in ((call, "id"), (call, "type"), (function, "name")) if field in holder]
    call.pop("id", None)
    call.pop("type", None)
    function.pop("name", None)
    return bool(repeated)


def _stringify(function: dict[str, Any]) -> bool:
    if isinstance(function.get("arguments"), dict | list):
        function["arguments"] = orjson.dumps(function["arguments"]).decode()
        return True
    return False
