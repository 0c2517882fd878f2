"""OpenAI's dialect of chat and text completions: chunks, the usage chunk, `[DONE]`, and its error envelope."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.api.chunk_repairs import ChunkRepairs, mend_whole
from gateway.api.dialect import JSON, Headers, Question, Reader, Whole
from gateway.api.sse import Frames, StreamBroke, each, payload, split
from gateway.errors import Refusal
from gateway.progress import Usage

# The one version that OpenAI's API has ever named in its answers.
API_VERSION = (b"openai-version", b"2020-10-01")
DONE = b"data: [DONE]\n\n"
# What most clients know a model's reasoning by; `reasoning` is missed by some.
REASONING = "reasoning_content"
# vLLM's name for the stop that ended a choice, and SGLang's.
_STOP_NAMES = ("stop_reason", "matched_stop")
# Comments are safe in every chat client that was measured; named events and empty data are not.
COMMENT = b": waiting\n\n"


class OpenAiErrors:
    """OpenAI's envelope and headers, the same on all of its endpoints."""

    def refused(self, refusal: Refusal, request_id: bytes) -> tuple[int, Headers, bytes]:
        return refusal.status, [JSON, *refusal.headers()], refusal.body()

    def identity(self, request_id: bytes) -> Headers:
        return [(b"x-request-id", request_id), API_VERSION]

    def account(self, account: bytes) -> Headers:
        return [(b"openai-organization", account)]

    def took(self, milliseconds: int) -> Headers:
        return [(b"openai-processing-ms", b"%d" % milliseconds)]

    def rate_limit(self, limit: bytes, remaining: bytes, reset: bytes) -> Headers:
        return ()


class Chunks(OpenAiErrors):
    """`/v1/chat/completions` and `/v1/completions`."""

    silence = COMMENT

    def reader(self, question: Question) -> "ChunkReader":
        body = question.body
        return ChunkReader(question.wants_usage, question.engine.reasoning_field, _choices_asked(body), stop_ids_of(body))

    def whole(self, body: bytes, question: Question) -> Whole:
        parsed = parse_answer(body)
        choices = choices_of(parsed)
        if not choices:  # clients look into the first one
            raise StreamBroke("the engine sent an answer without choices")
        is_mended = False
        for choice in choices:
            is_mended |= mend_whole(choice, question.engine.reasoning_field)
        stop_ids = stop_ids_of(question.body)
        is_empty = not any(_has_answer(choice) or names_stop(choice, stop_ids) for choice in choices)
        return Whole(usage_of(parsed.get("usage")), is_empty, orjson.dumps(parsed) if is_mended else None)

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


def choices_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """None of them is an empty list. Raises: StreamBroke when they are no list of objects."""
    choices = answer.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise StreamBroke("the engine sent choices of an unknown shape")
    return choices


def _choices_asked(body: Mapping[str, Any]) -> int:
    """At most so many will come."""
    prompt = body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1
    return prompts * (body.get("n") or 1)


def stop_ids_of(body: Mapping[str, Any]) -> Sequence[object]:
    """The tokens that the client wants its answer to end at."""
    return body.get("stop_token_ids") or ()


def names_stop(choice: dict[str, Any], stop_ids: Sequence[object]) -> bool:
    """Whether it says which of the client's own stops ended it: who asks for one word of many has his answer then, also without
    any text. (Where the model itself ended it, vLLM and SGLang say nothing, or a token that was not asked for.)"""
    reasons = [choice.get(name) for name in _STOP_NAMES]
    return any(isinstance(reason, str) or (reason is not None and reason in stop_ids) for reason in reasons)


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

    Until every one of the `choices` has begun and there is output (a non-empty content, reasoning or tool delta) each frame is
    looked at; after it only frames that hold something notable are, the rest pass as they came. Usage is taken out of the chunks
    that have other content, and is the last chunk where the client asked for it. `reasoning_field` is the engine's name for what
    clients know as `reasoning_content`.
    """

    wants_usage: bool
    reasoning_field: str = REASONING
    choices: int = 1
    stop_ids: Sequence[object] = ()
    has_output: bool = False
    is_done: bool = False
    frames: int = 0
    usage: Usage | None = None
    finish_reason: str | None = None
    _frames: Frames = field(default_factory=Frames)
    _repairs: ChunkRepairs = field(default_factory=ChunkRepairs)
    _first: dict[str, Any] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _finished: set[int] = field(default_factory=set)
    _usage_owed: bytes = b""

    def feed(self, data: bytes) -> bytes:
        """Raises: StreamBroke on an error frame or on a frame over the limit."""
        whole = self._frames.feed(data)
        if not whole:
            return b""
        if self.reasoning_field != REASONING:
            whole = _rename_reasoning(whole, self.reasoning_field)
        if self.has_output and len(self._seen) >= self.choices and self._is_plain(whole):
            return whole
        return each(split(whole), self._look)

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
        return self._usage_owed + DONE

    def last_words(self) -> bytes:
        """Frames that finish every open choice with "length", shaped like the engine's own chunks."""
        chat = "delta" in (self._first.get("choices") or [{}])[0]
        open_choices = [
            {"index": index, "finish_reason": "length", **({"delta": {}} if chat else {"text": ""})}
            for index in sorted(self._seen - self._finished)
        ]
        return self._chunk(choices=open_choices) + DONE

    def silence(self) -> bytes:
        return COMMENT

    def _chunk(self, **content: Any) -> bytes:
        """One of ours, shaped like the engine's own."""
        shape = {key: value for key, value in self._first.items() if key not in ("choices", "usage")}
        return b"data: " + orjson.dumps({**shape, **content}) + b"\n\n"

    def _is_plain(self, frames: bytes) -> bool:
        """Nothing here needs a closer look: chunks alone, each with choices, no finish reason that is set, no usage, no error, no
        call that begins. Inside JSON strings quotes and line ends are escaped, so none of these can be text that a model wrote.
        (`find` and `count`: half of what `in` takes, a tenth of a regular expression.)"""
        is_one = frames.find(b"\n") == len(frames) - 2
        count = 1 if is_one else frames.count(b"\n\ndata: {") + 1
        if not frames.startswith(b"data: {") or not (is_one or frames.count(b"\n") == 2 * count):
            return False
        unfinished = frames.count(b'"finish_reason":null')
        if (
            unfinished < count
            or unfinished != frames.count(b'"finish_reason"')
            or frames.find(b'"error"') >= 0
            or (frames.find(b'"usage"') >= 0 and frames.count(b'"usage"') != frames.count(b'"usage":null'))
            or (frames.find(b'"tool_calls"') >= 0 and not self._repairs.may_pass(frames))
        ):
            return False
        self.frames += count
        return True

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
        usage, choices = chunk.get("usage"), choices_of(chunk)
        if isinstance(usage, dict):
            self.usage = usage_of(usage)
        else:
            usage = None
        if not choices:
            # Clients look into the first choice of every chunk: one without any is the usage chunk that was asked for, or none.
            # llama.cpp sends one after each choice: the last of them is sent at the end.
            if usage is not None and self.wants_usage:
                self._usage_owed = frame
            return b""
        self.frames += 1
        self._first = self._first or chunk
        is_mended = False
        for at, choice in enumerate(choices):
            is_mended |= self._note(choice, at)
        if usage is not None:
            del chunk["usage"]
            self._usage_owed = self._chunk(choices=[], usage=usage) if self.wants_usage else b""
        elif not is_mended:
            return _as_data(frame)
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def _note(self, choice: dict[str, Any], at: int) -> bool:
        is_mended = type(choice.get("index")) is not int
        if is_mended:
            choice["index"] = at
        index: int = choice["index"]
        is_mended |= self._repairs.mend(choice, index, is_first=index not in self._seen)
        self.has_output = self.has_output or _has_output(choice) or names_stop(choice, self.stop_ids)
        self._seen.add(index)
        if reason := choice.get("finish_reason"):
            self.finish_reason = reason
            self._finished.add(index)
        return is_mended


def _as_data(frame: bytes) -> bytes:
    """A frame without what is not data in it: comments, names, ids."""
    if frame.startswith(b"data:") and frame.count(b"\n") == 2:
        return frame
    return b"".join([line for line in frame.splitlines(keepends=True) if line.startswith(b"data:")]) + b"\n"


def _rename_reasoning(frames: bytes, name: str) -> bytes:
    """Quotes in strings are escaped, so this finds keys alone. (An engine between two versions sends both names.)"""
    theirs = b'"%b":"' % name.encode()
    if frames.find(theirs) < 0 or b'"%b":' % REASONING.encode() in frames:
        return frames
    return frames.replace(theirs, b'"%b":"' % REASONING.encode())


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
