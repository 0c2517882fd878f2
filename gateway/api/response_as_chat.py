"""A body of `/v1/responses` that was posted to `/v1/chat/completions`, as a chat's: Cursor does so, and waits for chunks."""

from collections.abc import Iterator
from typing import Any

import orjson

from gateway.api.response_items import STORED, refuse_stored
from gateway.errors import Refusal

Body = dict[str, Any]

# Fields whose meaning is carried over under another name, or that a chat has no use for.
_REPLACED = (
    *STORED, "input", "instructions", "tools", "tool_choice", "text", "reasoning", "max_output_tokens", "include", "store",
    "truncation", "max_tool_calls",
)  # fmt: skip
_TEXTS = frozenset({"input_text", "output_text", "text"})


def is_misplaced(body: Body) -> bool:
    return "messages" not in body and "input" in body


def rewrite(body: Body) -> None:
    """In place. Raises: Refusal (400) where the input is neither a string nor a list of objects, or needs what is not stored."""
    refuse_stored(body)
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Refusal(
            400, "input must be a string or a list of items; better, send messages, or POST /v1/responses.", param="input",
            code="invalid_value",
        )  # fmt: skip
    chat = {"messages": list(_messages(items, body.get("instructions"))), **dict(_settings(body))}
    for field in _REPLACED:
        body.pop(field, None)
    body.update(chat)


def _messages(items: list[Body], instructions: object) -> Iterator[Body]:
    if instructions:
        yield {"role": "system", "content": instructions}
    calls: list[Body] = []
    for item in items:
        call = _call(item)
        if call is not None:
            calls.append(call)
            continue
        if item.get("type") == "reasoning":
            continue
        if calls:  # those that follow one another were made in one turn
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        yield _message(item)
    if calls:
        yield {"role": "assistant", "content": None, "tool_calls": calls}


def _call(item: Body) -> Body | None:
    kind = item.get("type")
    if kind not in ("function_call", "custom_tool_call"):
        return None
    arguments = item.get("arguments") if kind == "function_call" else orjson.dumps({"input": item.get("input")}).decode()
    return {"id": item.get("call_id"), "type": "function", "function": {"name": item.get("name"), "arguments": arguments}}


def _message(item: Body) -> Body:
    if item.get("type") in ("function_call_output", "custom_tool_call_output"):
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _content(item.get("output"))}
    return {"role": item.get("role"), "content": _content(item.get("content"))}


def _content(content: object) -> object:
    if not isinstance(content, list):
        return content
    parts = [_part(part) for part in content]
    if all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        return "\n\n".join(str(part["text"]) for part in parts)  # the plainest shape, which every template takes
    return parts


def _part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind in _TEXTS:
        return {"type": "text", "text": part.get("text")}
    if kind == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url"), "detail": part.get("detail") or "auto"}}
    return part


def _settings(body: Body) -> Iterator[tuple[str, Any]]:
    given = body.get("tools")
    held = given if isinstance(given, list) else ()
    tools = [_tool(tool) for tool in held if isinstance(tool, dict) and tool.get("type") == "function"]
    choice, text, reasoning = body.get("tool_choice"), body.get("text"), body.get("reasoning")
    if tools:
        yield "tools", tools
        if isinstance(choice, dict) and choice.get("type") == "function":
            yield (
                "tool_choice",
                choice if "function" in choice else {"type": "function", "function": {"name": choice.get("name")}},
            )
        elif isinstance(choice, str):
            yield "tool_choice", choice
    if body.get("max_output_tokens") is not None:
        yield "max_completion_tokens", body["max_output_tokens"]
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict):
        schema = {name: value for name, value in form.items() if name != "type"}
        yield "response_format", {"type": form.get("type"), **({"json_schema": schema} if schema else {})}
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        yield "reasoning_effort", reasoning["effort"]


def _tool(tool: Body) -> Body:
    if "function" in tool:
        return tool
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}
