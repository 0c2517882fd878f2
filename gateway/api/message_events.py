"""Anthropic's dialect of `/v1/messages`: named events from `message_start` to `message_stop`, and what keeps the line open."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.api.chunks import parse_answer
from gateway.api.dialect import Question, Reader, Whole
from gateway.api.message_errors import AnthropicErrors, error_body
from gateway.api.message_repairs import NEEDS_REPAIRS, mended, name_stop_sequence
from gateway.api.sse import Frames, StreamBroke, each, payload, split
from gateway.errors import Refusal
from gateway.progress import Usage

# Anthropic's own keep-alive; its SDKs pass over it, before `message_start` too.
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
# What most frames begin with. It has a line break of its own, so that no text inside a JSON string can look like it.
DELTA = b"event: content_block_delta\ndata: "


class MessageEvents(AnthropicErrors):
    """`/v1/messages`."""

    silence = PING

    def reader(self, question: Question) -> "MessageReader":
        return MessageReader(question.engine.name in NEEDS_REPAIRS)

    def whole(self, body: bytes, question: Question) -> Whole:
        parsed = parse_answer(body)
        content = parsed.get("content")
        if not isinstance(content, list):
            raise StreamBroke("the engine sent an answer without content")
        is_mended = question.engine.name in NEEDS_REPAIRS and name_stop_sequence(parsed)
        return Whole(
            usage_of(parsed.get("usage")),
            not (parsed.get("stop_sequence") or any(isinstance(block, dict) and _says_something(block) for block in content)),
            orjson.dumps(parsed) if is_mended else None,
        )

    def broken(self, refusal: Refusal, reader: Reader | None) -> bytes:
        return _event("error", error_body(refusal))


class TokenCounts(MessageEvents):
    """`/v1/messages/count_tokens`: one number. Nothing was read by a model, so no tokens are metered."""

    def whole(self, body: bytes, question: Question) -> Whole:
        if type(parse_answer(body).get("input_tokens")) is not int:
            raise StreamBroke("the engine sent no count")
        return Whole(Usage(), is_empty=False)


MESSAGE_EVENTS = MessageEvents()
TOKEN_COUNTS = TokenCounts()


def usage_of(usage: object) -> Usage:
    """Anthropic's `input_tokens` leave out what came from a cache; our prompt tokens are all of them. Engines keep to that
    (vLLM's `message_start` has them all in `input_tokens`, and no cache yet: the sum is the same)."""
    if not isinstance(usage, dict):
        return Usage()
    cached = usage.get("cache_read_input_tokens")
    parts = [usage.get("input_tokens"), cached, usage.get("cache_creation_input_tokens")]
    prompt = sum(part for part in parts if type(part) is int) if type(parts[0]) is int else None
    return Usage.of(prompt, cached, usage.get("output_tokens"))


def _says_something(block: dict[str, Any]) -> bool:
    """Text, thought, or a call; one without arguments is a call too."""
    return bool(block.get("type") == "tool_use" or block.get("text") or block.get("thinking") or block.get("data"))


@dataclass(slots=True)
class MessageReader:
    """Reads one engine's stream: `feed` takes what arrived and gives what the client gets.

    Until the first output every frame is looked at; after it deltas pass as they came. A frame without its `event:` line, which
    SDKs would drop without a word, gets one.
    """

    needs_repairs: bool
    has_output: bool = False
    is_done: bool = False
    frames: int = 0
    usage: Usage | None = None
    _frames: Frames = field(default_factory=Frames)
    _open_block: int | None = None
    _has_stop_reason: bool = False

    def feed(self, data: bytes) -> bytes:
        """Raises: StreamBroke on an error event or on a frame over the limit."""
        whole = self._frames.feed(data)
        if self.has_output and (deltas := whole.count(DELTA)) and deltas == whole.count(b"\n\n") and whole.find(b"\r") < 0:
            self.frames += deltas
            return whole
        return each(split(whole), self._look)

    def end(self) -> bytes:
        """Raises: StreamBroke when the engine's side closed before `message_stop`."""
        if not self.is_done:
            raise StreamBroke("the engine ended the stream without message_stop")
        return b""

    def last_words(self) -> bytes:
        """The open block is closed, and the message ends as one that had no more tokens."""
        words = []
        if self._open_block is not None:
            words.append(_event("content_block_stop", orjson.dumps({"type": "content_block_stop", "index": self._open_block})))
        if not self._has_stop_reason:
            delta = {"stop_reason": "max_tokens", "stop_sequence": None}
            ending = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.frames}}
            words.append(_event("message_delta", orjson.dumps(ending)))
        return b"".join([*words, _event("message_stop", b'{"type":"message_stop"}')])

    def silence(self) -> bytes:
        return PING

    def _look(self, frame: bytes) -> bytes:
        data = payload(frame)
        if data is None or self.is_done or data == b"[DONE]":
            return b""  # comments are an engine's own business; this dialect has no [DONE], and nothing after the end
        if self.has_output and frame.startswith(DELTA):
            self.frames += 1
            return frame
        event = _parsed(data)
        kind = event["type"]
        if kind == "error" or event.get("error"):
            raise StreamBroke("the engine sent an error instead of output")  # its words may quote the prompt
        sent = mended(event, self._open_block) if self.needs_repairs else None
        self._note(kind, event)
        if sent is not None:
            return b"".join([_event(each["type"], orjson.dumps(each)) for each in sent])
        return frame if frame.startswith(b"event:") or b"\nevent:" in frame else _event(kind, data)

    def _note(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "content_block_delta":
            delta = event.get("delta") or {}
            self.frames += 1
            self.has_output = bool(delta.get("text") or delta.get("thinking") or delta.get("partial_json")) or self.has_output
        elif kind == "content_block_start":
            self._open_block = event.get("index", 0)
            self.has_output = self.has_output or _says_something(event.get("content_block") or {})
        elif kind == "content_block_stop" and event.get("index") == self._open_block:
            self._open_block = None
        elif kind == "message_start":
            self._count(usage_of((event.get("message") or {}).get("usage"))._replace(completion_tokens=None))
        elif kind == "message_delta":
            self._count(usage_of(event.get("usage")))
            delta = event.get("delta") or {}
            self._has_stop_reason = bool(delta.get("stop_reason"))
            self.has_output = self.has_output or bool(delta.get("stop_sequence"))  # which of many ended it is an answer
        elif kind == "message_stop":
            self.is_done = True

    def _count(self, told: Usage) -> None:
        """The last event that tells a count has it right: some engines learn of the cache, and of the output, only then."""
        known = self.usage or Usage()
        self.usage = Usage(*(new if new is not None else old for new, old in zip(told, known, strict=True)))


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise StreamBroke("the engine sent a frame that is not JSON") from None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise StreamBroke("the engine sent a frame that is no event")
    return event


def _event(kind: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
