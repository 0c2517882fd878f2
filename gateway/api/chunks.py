"""OpenAI's dialect of chat and text completions: chunks, the usage chunk, `[DONE]`, and its error envelope."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.api.dialect import JSON, Headers, Question, Reader, Whole
from gateway.api.sse import FRAME_LIMIT_BYTES, StreamBroke, payload, split, whole_frames
from gateway.errors import Refusal
from gateway.progress import Usage

DONE = b"data: [DONE]\n\n"
# Comments are safe in every chat client that was measured; named events and empty data are not.
COMMENT = b": waiting\n\n"


class OpenAiErrors:
    """OpenAI's envelope and headers, the same on all of its endpoints."""

    def refused(self, refusal: Refusal, request_id: bytes) -> tuple[int, Headers, bytes]:
        return refusal.status, [JSON, *refusal.headers()], refusal.body()

    def identity(self, request_id: bytes) -> Headers:
        return [(b"x-request-id", request_id)]

    def rate_limit(self, limit: bytes, remaining: bytes, reset: bytes) -> Headers:
        return ()


class Chunks(OpenAiErrors):
    """`/v1/chat/completions` and `/v1/completions`."""

    silence = COMMENT

    def reader(self, question: Question) -> "ChunkReader":
        return ChunkReader(question.wants_usage)

    def whole(self, body: bytes, question: Question) -> Whole:
        parsed = parse_answer(body)
        if "choices" not in parsed:
            raise StreamBroke("the engine sent an answer without choices")
        return Whole(usage_of(parsed.get("usage")), not any(_has_answer(choice) for choice in parsed["choices"] or ()))

    def broken(self, refusal: Refusal, reader: Reader | None) -> bytes:
        return b"data: " + refusal.body() + b"\n\n" + DONE


CHUNKS = Chunks()


def parse_answer(body: bytes) -> dict[str, Any]:
    """Raises: StreamBroke when it is not a JSON object."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise StreamBroke("the engine sent an answer that is not JSON") from None
    if not isinstance(parsed, dict):
        raise StreamBroke("the engine sent an answer that is not an object")
    return parsed


def usage_of(usage: object) -> Usage:
    """OpenAI's names of the three counts that we keep."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage.of(usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))


def _has_answer(choice: dict[str, Any]) -> bool:
    """Text, a call, or what was asked for instead of text: an answer of probabilities or token ids is one."""
    if any(choice.get(part) for part in ("logprobs", "prompt_logprobs", "token_ids", "prompt_token_ids")):
        return True
    message = choice.get("message")
    if not isinstance(message, dict):
        return bool(choice.get("text"))
    return any(
        message.get(part) for part in ("content", "tool_calls", "reasoning_content", "reasoning", "refusal", "function_call")
    )


@dataclass(slots=True)
class ChunkReader:
    """Reads one engine's stream: `feed` takes what arrived and gives what the client gets.

    Until the first output (a non-empty content, reasoning or tool delta) every frame is looked at; after it only frames that
    hold something notable are, the rest pass as they came. A usage chunk is taken out unless the client asked for it.
    """

    wants_usage: bool
    has_output: bool = False
    is_done: bool = False
    frames: int = 0
    usage: Usage | None = None
    finish_reason: str | None = None
    _tail: bytes = b""
    _first: dict[str, Any] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _finished: set[int] = field(default_factory=set)

    def feed(self, data: bytes) -> bytes:
        """Raises: StreamBroke on an error frame or on a frame over the limit."""
        if self._tail:
            data = self._tail + data
        whole, self._tail = whole_frames(data)
        if len(self._tail) > FRAME_LIMIT_BYTES:
            raise StreamBroke(f"the engine sent a frame of over {FRAME_LIMIT_BYTES} bytes")
        if self.has_output and _is_plain(whole):
            self.frames += whole.count(b"data:")
            return whole
        return b"".join([self._look(frame) for frame in split(whole)])

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
        return b"data: " + orjson.dumps({**chunk, "choices": open_choices}) + b"\n\n" + DONE

    def silence(self) -> bytes:
        return COMMENT

    def _look(self, frame: bytes) -> bytes:
        data = payload(frame)
        if data is None or self.is_done:
            return b""  # an engine's comments and named events are its own business
        if data == b"[DONE]":
            return self.end()
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise StreamBroke("the engine sent a frame that is not JSON") from None
        if not isinstance(chunk, dict):
            raise StreamBroke("the engine sent a frame that is not an object")
        _raise_error_in(chunk)
        return self._take(chunk, frame)

    def _take(self, chunk: dict[str, Any], frame: bytes) -> bytes:
        usage, choices = chunk.get("usage"), chunk.get("choices") or ()
        if isinstance(usage, dict):
            self.usage = usage_of(usage)
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
