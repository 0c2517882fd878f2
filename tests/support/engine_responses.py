"""Answers in the shape of vLLM 0.32 to `/v1/responses`, as recorded in tests/recordings: whole and as named events."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.engine_answers import CREATED, Job, Surface, error_body

Event = dict[str, Any]
# Fields of a request that an answer repeats.
_ECHOED = ("instructions", "metadata", "tools", "tool_choice", "reasoning", "text", "user")


def _whole(job: Job) -> bytes:
    return _json(_response(job, _status(job), _output(job)))


def _events(job: Job) -> Iterator[tuple[bytes, bool]]:
    for number, (event, is_output) in enumerate(_unnumbered(job)):
        numbered = {**event, "sequence_number": number}
        yield f"event: {event['type']}\n".encode() + b"data: " + _json(numbered) + b"\n\n", is_output
        if is_output and job.script.sse_comment:
            yield b": keep-alive\n\n", False


def _unnumbered(job: Job) -> Iterator[tuple[Event, bool]]:
    script = job.script
    if script.error_frame_first:
        yield {"type": "error", **json.loads(error_body(500, "the engine failed before any output"))}, False
        return
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "response": _response(job, "in_progress", [])}, False
    steps = 0
    for index, item in enumerate(_output(job)):
        for event in _item_events(job, index, item):
            if is_output := event["type"].endswith(".delta"):
                if script.error_after == steps:
                    failed = {**_response(job, "failed", []), "error": {"code": "server_error", "message": "the engine failed"}}
                    yield {"type": "response.failed", "response": failed}, False
                    return
                steps += 1
            yield event, is_output
    if not script.no_finish:
        # vLLM ends every answer so, even one that was cut.
        yield {"type": "response.completed", "response": _response(job, _status(job), _output(job))}, False


def _output(job: Job) -> list[Event]:
    if not job.count:
        return []
    items: list[Event] = []
    if job.script.reasoning:
        thought = {"type": "reasoning_text", "text": job.script.text * (job.count // 2)}
        items.append({"id": f"rs_{job.id}", "summary": [], "type": "reasoning", "content": [thought], "status": None})
    if job.script.tool and not _has_result(job):
        items.append(_call(job))
    else:
        part = {"annotations": [], "text": job.script.text * (job.count - len(items) * (job.count // 2)), "type": "output_text"}
        items.append({"id": f"msg_{job.id}", "content": [part], "role": "assistant", "status": "completed", "type": "message"})
    return items


def _call(job: Job) -> Event:
    """A model calls a function of a namespace by one flat name, and vLLM gives it its own back."""
    name, namespace = job.script.tool_name, None
    for tool in job.payload.get("tools") or ():
        if tool["type"] == "namespace" and name.startswith(f"{tool['name']}__"):
            namespace, name = tool["name"], name.removeprefix(f"{tool['name']}__")
    return {
        "arguments": job.script.tool_arguments, "call_id": "chatcmpl-tool-1", "name": name, "type": "function_call",
        "id": f"fc_{job.id}", "namespace": namespace, "status": "completed",
    }  # fmt: skip


def _has_result(job: Job) -> bool:
    given = job.payload["input"]
    return isinstance(given, list) and given[-1].get("type") == "function_call_output"


def _item_events(job: Job, index: int, item: Event) -> Iterator[Event]:
    where: Event = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        opened: Event = {"arguments": ""}
        inner = _arguments(item, where)
    elif item["type"] == "reasoning":
        opened = {"content": []}
        inner = _texts(job, item, "response.reasoning_text", {**where, "content_index": 0}, job.count // 2)
    else:
        opened = {"content": []}
        inner = _parts(job, item, {**where, "content_index": 0})
    yield {
        "type": "response.output_item.added", "output_index": index, "item": {**item, **opened, "status": "in_progress"},
    }  # fmt: skip
    yield from inner
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _arguments(item: Event, where: Event) -> Iterator[Event]:
    text = item["arguments"]
    for piece in (text[:3], text[3:]):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **where, "name": item["name"], "arguments": text}


def _parts(job: Job, item: Event, where: Event) -> Iterator[Event]:
    (part,) = item["content"]
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": "", "logprobs": []}}
    yield from _texts(job, item, "response.output_text", {**where, "logprobs": []}, len(part["text"]) // len(job.script.text))
    yield {"type": "response.content_part.done", **where, "part": part}


def _texts(job: Job, item: Event, kind: str, where: Event, count: int) -> Iterator[Event]:
    for _ in range(count):
        yield {"type": f"{kind}.delta", **where, "delta": job.script.text}
    yield {"type": f"{kind}.done", **where, "text": item["content"][0]["text"]}


def _status(job: Job) -> str:
    return "incomplete" if job.finish_reason == "length" else "completed"


def _response(job: Job, status: str, output: list[Event]) -> Event:
    is_over = status in ("completed", "incomplete")
    return {
        "id": f"resp_{job.id}", "created_at": CREATED, "object": "response", "model": job.payload.get("model"), "output": output,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None, "status": status,
        "parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0, "background": False,
        **{name: job.payload.get(name) for name in _ECHOED},
        "usage": _usage(job) if is_over and not job.script.no_usage else None,
    }  # fmt: skip


def _usage(job: Job) -> Event:
    counted = job.usage()
    cached = counted["prompt_tokens_details"] or {"cached_tokens": 0}
    return {
        "input_tokens": counted["prompt_tokens"], "input_tokens_details": cached, "output_tokens": counted["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": job.count // 2 if job.script.reasoning else 0},
        "total_tokens": counted["total_tokens"],
    }  # fmt: skip


def _json(payload: Event) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


RESPONSES = Surface(_whole, _events)
