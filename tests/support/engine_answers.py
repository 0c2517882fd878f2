"""Answers in the shape of vLLM 0.33: chat and text completions, whole and as server-sent events."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.engine_script import Script, prompt_of

CREATED = 1_796_083_200
DONE = b"data: [DONE]\n\n"


class Surface(NamedTuple):
    """How one family of endpoints answers: whole, and as events (True marks those that carry output)."""

    whole: "Callable[[Job], bytes]"
    events: "Callable[[Job], Iterator[tuple[bytes, bool]]]"


@dataclass(frozen=True, slots=True)
class Job:
    """One request as the engine sees it."""

    id: str
    is_chat: bool
    payload: dict[str, Any]
    script: Script
    surface: Surface

    @property
    def count(self) -> int:
        limits = [self.payload.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
        limit = next((limit for limit in limits if isinstance(limit, int)), self.script.chunks)
        return 0 if self.script.empty else min(self.script.chunks, limit)

    @property
    def choices(self) -> int:
        n = self.payload.get("n")
        return n if isinstance(n, int) else 1

    @property
    def calls_tool(self) -> bool:
        """Until its result has come."""
        messages = self.payload.get("messages") or ()
        return self.script.tool and not any(isinstance(message, dict) and message.get("role") == "tool" for message in messages)

    @property
    def finish_reason(self) -> str:
        if self.calls_tool:
            return "tool_calls"
        return "length" if self.count < self.script.chunks and not self.script.empty else "stop"

    def usage(self) -> dict[str, Any]:
        prompt = self.script.prompt_tokens
        if prompt is None:
            prompt = max(1, len(prompt_of(self.payload)) // 4)
        completion = self.script.completion_tokens
        if completion is None:
            completion = self.count * self.choices
        cached = self.script.cached_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + completion,
            "completion_tokens": completion,
            "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        }


def error_body(status: int, message: str) -> bytes:
    kind = "BadRequestError" if status < 500 else "InternalServerError"
    return _json({"error": {"message": message, "type": kind, "param": None, "code": status}})


def _whole(job: Job) -> bytes:
    choices = [_whole_choice(job, index) for index in range(job.choices)]
    answer = {
        "id": job.id,
        "object": "chat.completion" if job.is_chat else "text_completion",
        "created": CREATED,
        "model": job.payload.get("model"),
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": None,
        "usage": None if job.script.no_usage else job.usage(),
    }
    return _json(answer)


def _events(job: Job) -> Iterator[tuple[bytes, bool]]:
    script = job.script
    if script.error_frame_first:
        yield _event(json.loads(error_body(500, "the engine failed before any output"))), False
        yield DONE, False
        return
    if job.is_chat:
        for index in range(job.choices):
            yield _chunk(job, index, {"role": "assistant", "content": ""}), False
    for step in range(job.count):
        if script.error_after == step:
            yield _event(json.loads(error_body(500, "the engine failed"))), False
            yield DONE, False
            return
        for index in range(job.choices):
            finish = job.finish_reason if step == job.count - 1 and not script.no_finish else None
            yield _chunk(job, index, _delta(job, step), finish), True
        if script.sse_comment:
            yield b": keep-alive\n\n", False
    if script.no_finish:
        return
    if not job.count:
        for index in range(job.choices):
            yield _chunk(job, index, {"content": ""}, "stop"), False
    options = job.payload.get("stream_options") or {}
    if options.get("include_usage") and not script.no_usage:
        yield _event({**_envelope(job), "choices": [], "usage": job.usage()}), False
    yield DONE, False


def _delta(job: Job, step: int) -> dict[str, Any]:
    script = job.script
    if job.calls_tool:
        start, end = (len(script.tool_arguments) * at // job.count for at in (step, step + 1))
        call: dict[str, Any] = {"index": 0, "function": {"arguments": script.tool_arguments[start:end]}}
        if step == 0:
            call |= {"id": "chatcmpl-tool-1", "type": "function"}
            call["function"]["name"] = script.tool_name
        return {"tool_calls": [call]}
    if script.reasoning and step < job.count // 2:
        return {"reasoning_content": script.text}
    return {"content": script.text}


def _chunk(job: Job, index: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice: dict[str, Any] = {"index": index, "logprobs": None, "finish_reason": finish}
    if job.is_chat:
        choice["delta"] = delta
    else:
        choice["text"] = delta.get("content", "")
    return _event({**_envelope(job), "choices": [choice]})


def _envelope(job: Job) -> dict[str, Any]:
    kind = "chat.completion.chunk" if job.is_chat else "text_completion"
    return {"id": job.id, "object": kind, "created": CREATED, "model": job.payload.get("model")}


def _whole_choice(job: Job, index: int) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": index, "logprobs": None, "finish_reason": job.finish_reason, "stop_reason": None}
    text = job.script.text * job.count
    if not job.is_chat:
        return {**choice, "text": text}
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "tool_calls": [], "reasoning_content": None}
    if job.calls_tool:
        function = {"name": job.script.tool_name, "arguments": job.script.tool_arguments}
        call = {"id": "chatcmpl-tool-1", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    if job.script.reasoning:
        message |= {"reasoning_content": text, "content": text}
    return {**choice, "message": message}


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + _json(payload) + b"\n\n"


def _json(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


CHOICES = Surface(_whole, _events)
