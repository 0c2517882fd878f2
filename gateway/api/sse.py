"""Server-sent events of an OpenAI stream, as bytes: where frames end, what they tell the meter, and what is taken out again."""

import re
from dataclasses import dataclass, field
from typing import Any

import orjson

_FRAME_END = re.compile(rb"\r?\n\r?\n")
DONE = b"data: [DONE]\n\n"
# A frame larger than this is not something an engine sends; a limit keeps a broken one from filling our memory.
FRAME_LIMIT_BYTES = 8 * 1024 * 1024


class StreamBroke(Exception):
    """The engine's stream can't be carried on: an error frame, no finish, or no frames at all."""


@dataclass(slots=True)
class StreamReader:
    """Reads one engine's stream: `feed` takes what arrived and gives what the client gets.

    Until the first output (a non-empty content, reasoning or tool delta) every frame is looked at; after it only frames that
    hold something notable are, the rest pass as they came. A usage chunk is taken out unless the client asked for it.
    """

    wants_usage: bool
    has_output: bool = False
    is_done: bool = False
    frames: int = 0
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    _tail: bytes = b""
    _first: dict[str, Any] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _finished: set[int] = field(default_factory=set)

    def feed(self, data: bytes) -> bytes:
        """Raises: StreamBroke on an error frame or on a frame over the limit."""
        if self._tail:
            data = self._tail + data
        whole, self._tail = _whole_frames(data)
        if len(self._tail) > FRAME_LIMIT_BYTES:
            raise StreamBroke(f"the engine sent a frame of over {FRAME_LIMIT_BYTES} bytes")
        if self.has_output and _is_plain(whole):
            self.frames += whole.count(b"data:")
            return whole
        return b"".join([self._look(frame) for frame in _split(whole)])

    @property
    def is_finished(self) -> bool:
        """Every choice that began has a finish reason."""
        return bool(self._finished) and self._seen <= self._finished

    def end(self) -> bytes:
        """The engine's side has closed: what is still owed to the client. Raises: StreamBroke when an answer was cut."""
        if self.is_done:
            return b""
        if not self.is_finished:
            raise StreamBroke("the engine ended the stream without finishing it")
        self.is_done = True
        return DONE

    def last_words(self) -> bytes:
        """Frames that finish every open choice with "length", shaped like the engine's own chunks."""
        chat = "delta" in (self._first.get("choices") or [{}])[0]
        open_choices = [
            {"index": index, "finish_reason": "length", **({"delta": {}} if chat else {"text": ""})}
            for index in sorted(self._seen - self._finished)
        ]
        chunk = {key: value for key, value in self._first.items() if key not in ("choices", "usage")}
        return b"data: " + orjson.dumps({**chunk, "choices": open_choices}) + b"\n\n"

    def _look(self, frame: bytes) -> bytes:
        payload = _payload(frame)
        if payload is None or self.is_done:
            return b""  # an engine's comments and named events are its own business
        if payload == b"[DONE]":
            return self.end()
        try:
            chunk = orjson.loads(payload)
        except orjson.JSONDecodeError:
            raise StreamBroke("the engine sent a frame that is not JSON") from None
        if not isinstance(chunk, dict):
            raise StreamBroke("the engine sent a frame that is not an object")
        _raise_error_in(chunk)
        return self._take(chunk, frame)

    def _take(self, chunk: dict[str, Any], frame: bytes) -> bytes:
        usage, choices = chunk.get("usage"), chunk.get("choices") or ()
        if isinstance(usage, dict):
            self.usage = usage
            if not choices:
                return frame if self.wants_usage else b""
        self.frames += 1
        self._first = self._first or chunk
        for choice in choices:
            self._note(choice)
        if isinstance(usage, dict) and not self.wants_usage:
            del chunk["usage"]
            return b"data: " + orjson.dumps(chunk) + b"\n\n"
        return frame

    def _note(self, choice: dict[str, Any]) -> None:
        self.has_output = self.has_output or _has_output(choice)
        index = choice.get("index", 0)
        self._seen.add(index)
        if reason := choice.get("finish_reason"):
            self.finish_reason = reason
            self._finished.add(index)


def _is_plain(frames: bytes) -> bool:
    """Nothing here needs a closer look: no finish reason that is set, no usage, no error, no end. Inside JSON strings quotes are
    escaped, so none of these can be text that a model wrote. (Substring searches: a tenth of a regular expression's cost.)"""
    return not (
        b"[DONE]" in frames
        or b'"error"' in frames
        or frames.count(b'"finish_reason"') != frames.count(b'"finish_reason":null')
        or frames.count(b'"usage"') != frames.count(b'"usage":null')
    )


def _whole_frames(data: bytes) -> tuple[bytes, bytes]:
    """Data up to the last frame's end, and the rest."""
    end = data.rfind(b"\n\n")
    cut = end + 2 if end >= 0 else 0
    crlf = data.rfind(b"\r\n\r\n")
    if crlf >= 0:
        cut = max(cut, crlf + 4)
    return (data, b"") if cut == len(data) else (data[:cut], data[cut:])


def _split(whole: bytes) -> list[bytes]:
    frames, start = [], 0
    for end in _FRAME_END.finditer(whole):
        frames.append(whole[start : end.end()])
        start = end.end()
    return frames


def _payload(frame: bytes) -> bytes | None:
    """The data of a frame; None for a comment or an empty one."""
    lines = [line[5:].strip() for line in frame.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def _raise_error_in(chunk: dict[str, Any]) -> None:
    """Errors inside a stream come as {"error": {...}}, or from older engines as {"object": "error", "message": ...}."""
    error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
    if error:
        # Its words are not kept: engines quote prompts, and this is logged.
        raise StreamBroke("the engine sent an error instead of output")


def _has_output(choice: dict[str, Any]) -> bool:
    if choice.get("logprobs") or choice.get("token_ids"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    return bool(
        delta.get("content")
        or delta.get("reasoning_content")
        or delta.get("reasoning")
        or delta.get("tool_calls")
        or delta.get("function_call")
        or delta.get("refusal")
        or delta.get("audio")
    )
