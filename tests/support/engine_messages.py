"""Answers in the shape of vLLM 0.32 to Anthropic's `/v1/messages` and `/v1/messages/count_tokens`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.engine_answers import Job, Surface
from tests.support.engine_script import prompt_of

SIGNATURE = "c2lnbmF0dXJl"


def event(kind: str, **fields: Any) -> bytes:
    """vLLM writes each field in the order in which it declares them, `type` first."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **fields}))


def _whole(job: Job) -> bytes:
    script = job.script
    content = [{"type": "text", "text": script.text * job.count}]
    if script.tool:
        content = [
            {"type": "tool_use", "id": "chatcmpl-tool-1", "name": script.tool_name, "input": json.loads(script.tool_arguments)}
        ]
    if script.reasoning:
        content.insert(0, {"type": "thinking", "thinking": script.text * job.count, "signature": SIGNATURE})
    answer = {"id": job.id, "type": "message", "role": "assistant", "content": content, "model": job.payload["model"]}
    return _json({**answer, "stop_reason": _stop_reason(job), "usage": _usage(job, cached=script.cached_tokens)})


def _events(job: Job) -> Iterator[tuple[bytes, bool]]:
    script = job.script
    if script.error_frame_first:
        yield _error(), False
        return
    start = {"id": job.id, "type": "message", "role": "assistant", "content": [], "model": job.payload["model"]}
    usage = {**_usage(job, cached=None), "output_tokens": 0}
    yield event("message_start", message={**start, "stop_reason": None, "stop_sequence": None, "usage": usage}), False
    index, kind = -1, ""
    for step in range(job.count):
        if script.error_after == step:
            yield _error(), False
            return
        block, delta = _delta(job, step)
        if block["type"] != kind:
            if kind:
                yield event("content_block_stop", index=index), False
            index, kind = index + 1, block["type"]
            yield event("content_block_start", content_block=block, index=index), False
        yield event("content_block_delta", delta=delta, index=index), True
        if script.sse_comment:
            yield b": keep-alive\n\n", False
    if script.no_finish:
        return
    if kind:
        yield event("content_block_stop", index=index), False
    delta = {"stop_reason": _stop_reason(job), "stop_sequence": None}
    yield event("message_delta", delta=delta, usage=_usage(job, cached=script.cached_tokens)), False
    yield event("message_stop"), False


def _delta(job: Job, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The block that a step belongs to, as it begins, and what the step adds to it."""
    script = job.script
    if script.reasoning and step < job.count // 2:
        return {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": script.text}
    if script.tool:
        block = {"type": "tool_use", "id": "chatcmpl-tool-1", "name": script.tool_name, "input": {}}
        start, end = (len(script.tool_arguments) * at // job.count for at in (step, step + 1))
        return block, {"type": "input_json_delta", "partial_json": script.tool_arguments[start:end]}
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": script.text}


def _stop_reason(job: Job) -> str:
    return {"tool_calls": "tool_use", "length": "max_tokens", "stop": "end_turn"}[job.finish_reason]


def _usage(job: Job, *, cached: int | None) -> dict[str, Any]:
    """Without its cache at first, as vLLM has it; `input_tokens` leave out what was cached."""
    usage = job.usage()
    told = {"input_tokens": usage["prompt_tokens"] - (cached or 0), "output_tokens": usage["completion_tokens"]}
    return told if cached is None else {**told, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}


def _error() -> bytes:
    return event("error", error={"type": "internal_error", "message": "the engine failed"})


def _count(job: Job) -> bytes:
    tokens = job.script.prompt_tokens
    if tokens is None:
        tokens = max(1, len(prompt_of(job.payload)) // 4)
    return _json({"input_tokens": tokens, "context_management": {"original_input_tokens": tokens}})


def _never(job: Job) -> Iterator[tuple[bytes, bool]]:
    raise AssertionError(f"the gateway asked for a stream of {job.id}")


def _json(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


MESSAGES, COUNTS = Surface(_whole, _events), Surface(_count, _never)
