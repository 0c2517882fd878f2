"""The dialect of `/v1/responses`: named events up to a terminal one, and OpenAI's error envelope."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from gateway.api.chunks import COMMENT, OpenAiErrors, parse_answer
from gateway.api.dialect import Question, Reader, Whole
from gateway.api.response_repairs import Repairs, repairs_for
from gateway.api.sse import Frames, StreamBroke, each, payload, split
from gateway.errors import Refusal
from gateway.progress import Usage

Event = dict[str, Any]

_TERMINAL = frozenset({"response.completed", "response.incomplete"})
_BEGINNING = frozenset({"response.created", "response.in_progress", "response.queued"})
# States of an answer that was given.
_GIVEN = frozenset({"completed", "incomplete"})
_SEQUENCE = re.compile(rb'"sequence_number": ?(\d+)')


class Events(OpenAiErrors):
    """Clients that stream responses raise on `error` with an error inside it, but Codex heeds only `response.failed`."""

    silence = COMMENT  # any event before `response.created` breaks SDKs' helpers

    def reader(self, question: Question) -> "EventReader":
        return EventReader(repairs_for(question))

    def whole(self, body: bytes, question: Question) -> Whole:
        response = parse_answer(body)
        output = response.get("output")
        if not isinstance(output, list) or response.get("status") not in _GIVEN:
            raise StreamBroke("the engine sent an answer without output")
        repairs = repairs_for(question)
        mended = orjson.dumps(response) if repairs is not None and repairs.mend_response(response) else None
        return Whole(usage_of(response.get("usage")), not any(_has_content(item) for item in output), mended)

    def broken(self, refusal: Refusal, reader: Reader | None) -> bytes:
        return reader.failure(refusal) if isinstance(reader, EventReader) else EventReader().failure(refusal)


EVENTS = Events()


def usage_of(usage: object) -> Usage:
    """The names that this API has for the three counts that we keep."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage.of(usage.get("input_tokens"), cached, usage.get("output_tokens"))


@dataclass(slots=True)
class EventReader:
    """Reads one engine's stream: `feed` takes what arrived and gives what the client gets.

    Until the first output (a non-empty delta, or an item with content) every event is looked at; after it only where an item or
    the answer begins or ends, the rest passes as it came, unless the engine's kind needs repairs.
    """

    repairs: Repairs | None = None
    has_output: bool = False
    is_done: bool = False
    frames: int = 0
    usage: Usage | None = None
    _frames: Frames = field(default_factory=Frames)
    _last: bytes = b""
    _response: Event = field(default_factory=dict)
    _items: list[Event] = field(default_factory=list)

    def feed(self, data: bytes) -> bytes:
        """Raises: StreamBroke on an engine's error and on a frame over the limit."""
        whole = self._frames.feed(data)
        if self.is_done or not whole:
            return b""
        if self.has_output and self.repairs is None and _is_plain(whole):
            self.frames += whole.count(b"data:")
            self._last = whole
            return whole
        had_output = self.has_output
        try:
            return each(split(whole), self._look)
        except StreamBroke:
            self.has_output = had_output  # of an output in the same read nothing has left
            raise

    def end(self) -> bytes:
        """The engine's side has closed. Raises: StreamBroke when no event ended the answer."""
        if not self.is_done:
            raise StreamBroke("the engine ended the stream without finishing it")
        return b""

    def last_words(self) -> bytes:
        """The answer so far, as one that reached its limit of output."""
        return self._ending("response.incomplete", incomplete_details={"reason": "max_output_tokens"})

    def silence(self) -> bytes:
        """A repeated event: comments don't reset Codex's idle timer. While the first one is held back, only a comment is safe."""
        if not self.has_output:
            return COMMENT
        kind = "response.in_progress"
        return written(kind, {"type": kind, "sequence_number": self._number(), "response": self._as("in_progress")})

    def failure(self, refusal: Refusal) -> bytes:
        """An answer that failed, and the error for clients that look for nothing else."""
        code, message = refusal.code or "server_error", refusal.message
        nested = {"message": message, "type": refusal.kind, "param": refusal.param, "code": code}
        # What was held back never left: clients know of no answer yet that could fail.
        begun = b"" if self.has_output else self._event("response.created", {"response": self._as("in_progress")})
        failed = self._ending("response.failed", error={"code": code, "message": message})
        return begun + failed + self._event("error", {"code": code, "message": message, "param": refusal.param, "error": nested})

    def _look(self, frame: bytes) -> bytes:
        data = payload(frame)
        if data is None or self.is_done or data == b"[DONE]":
            return b""  # an engine's comments are its own business
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise StreamBroke("the engine sent a frame that is not JSON") from None
        if not isinstance(event, dict):
            raise StreamBroke("the engine sent a frame that is not an object")
        kind = str(event.get("type"))
        if event.get("error") or kind in ("error", "response.failed"):
            # Its words are not kept: engines quote prompts, and this is logged.
            raise StreamBroke("the engine sent an error instead of output")
        if self.repairs is not None and self.repairs.mend_event(event):
            frame = written(kind, event)
        return self._take(kind, event, frame)

    def _take(self, kind: str, event: Event, frame: bytes) -> bytes:
        self._last = frame
        if kind in _BEGINNING:
            self._response = _response_of(event)
        elif kind in _TERMINAL:
            return self._finish(kind, event, frame)
        elif kind.endswith(".delta"):
            self.frames += 1
            self.has_output = self.has_output or bool(event.get("delta"))
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._items.append(item)
            self.has_output = self.has_output or _has_content(item)
        return frame

    def _finish(self, kind: str, event: Event, frame: bytes) -> bytes:
        response = _response_of(event)
        status = response.get("status")
        if status not in _GIVEN:
            raise StreamBroke(f"the engine ended its answer as {str(status)[:40]!r}")
        self.is_done = True
        self.usage = usage_of(response.get("usage"))
        output = response.get("output")
        self.has_output = self.has_output or (isinstance(output, list) and any(_has_content(item) for item in output))
        if kind != f"response.{status}":  # vLLM ends an answer that was cut as completed, too
            event["type"] = f"response.{status}"
            return written(event["type"], event)
        return frame

    def _ending(self, kind: str, **changes: Any) -> bytes:
        status = kind.removeprefix("response.")
        self.is_done = True
        return self._event(kind, {"response": {**self._as(status), **changes, "output": self._items}})

    def _as(self, status: str) -> Event:
        if not self._response:
            self._response = {"id": f"resp_{uuid4().hex}", "object": "response", "created_at": int(time.time()), "model": ""}
        return {"output": [], **self._response, "status": status}

    def _event(self, kind: str, parts: Event) -> bytes:
        """One of ours, numbered after the last one."""
        self._last = written(kind, {"type": kind, "sequence_number": self._number() + 1, **parts})
        return self._last

    def _number(self) -> int:
        numbers = _SEQUENCE.findall(self._last)
        return int(numbers[-1]) if numbers else -1


def written(kind: str, event: Event) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"


def _is_plain(frames: bytes) -> bool:
    """Nothing here needs a closer look: no item begins or ends, nor the answer, and there is no error. Inside JSON strings quotes
    are escaped, so none of these can be text that a model wrote."""
    return not (
        b'"response.output_item.' in frames
        or b'"response.completed"' in frames
        or b'"response.incomplete"' in frames
        or b'"response.failed"' in frames
        or b'"error"' in frames
    )


def _response_of(event: Event) -> Event:
    response = event.get("response")
    if not isinstance(response, dict):
        raise StreamBroke("the engine sent an event of an answer without the answer")
    return response


def _has_content(item: Mapping[str, Any]) -> bool:
    """Text, reasoning, or a call."""
    if str(item.get("type")).endswith("_call"):
        return True
    held = [part for parts in (item.get("content"), item.get("summary")) if isinstance(parts, list) for part in parts]
    return any(part.get("text") or part.get("refusal") for part in held if isinstance(part, dict))
