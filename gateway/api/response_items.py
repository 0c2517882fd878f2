"""The items and formats of a `/v1/responses` request, in the shapes that an engine takes."""

from types import MappingProxyType
from typing import Any

import orjson

from backends.engines.kind import EngineKind
from gateway.api.response_tools import flat_name, knows_custom, knows_namespaces
from gateway.errors import Refusal

Item = dict[str, Any]

# What needs a store, and what to send instead.
STORED = MappingProxyType(
    {
        "previous_response_id": "send the earlier items in input again",
        "conversation": "send the earlier items in input again",
        "background": "leave it out and stream the answer",
        "prompt": "send its text as instructions and input",
    }
)
# Kinds that read reasoning only from `content`.
_NEED_REASONING_CONTENT = frozenset({"llamacpp"})
# Kinds that heed only chat's field for a format of the output.
_KNOW_RESPONSE_FORMAT = frozenset({"llamacpp"})
_ABOVE_USER = ("system", "developer")


def refuse_stored(body: Item) -> None:
    """Raises: Refusal (400)."""
    for field, instead in STORED.items():
        if body.get(field):
            raise Refusal(400, f"{field} is not served, for nothing is stored here; {instead}.", param=field, code="not_stored")


def for_engine(body: Item, engine: EngineKind) -> None:
    """In the engine's copy of a body, whose items are the client's and stay as they are."""
    if isinstance(body["input"], list):
        fold_instructions(body)
        body["input"] = [shaped for item in body["input"] if (shaped := _shaped(item, engine)) is not None]
    if engine.name in _KNOW_RESPONSE_FORMAT:
        _move_format(body)


def fold_instructions(body: Item) -> None:
    """System and developer messages at the start join `instructions`: many chat templates know neither a developer nor a second
    system message, and Codex sends several."""
    items, texts = body["input"], list[str]()
    while len(texts) < len(items) - 1 and (text := _instruction(items[len(texts)])) is not None:
        texts.append(text)
    if texts:
        body["input"] = items[len(texts) :]
        body["instructions"] = "\n\n".join(text for text in (body.get("instructions"), *texts) if text)


def _instruction(item: Item) -> str | None:
    if item.get("role") not in _ABOVE_USER:
        return None
    content = item.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else None for part in content]
    return "\n\n".join(text for text in texts if isinstance(text, str)) if all(isinstance(text, str) for text in texts) else None


def _shaped(item: Item, engine: EngineKind) -> Item | None:
    kind = item.get("type")
    if item.get("role") == "developer":
        return {**item, "role": "system"}
    if kind == "reasoning":
        return _readable(item, engine)
    if kind == "function_call" and item.get("namespace") and not knows_namespaces(engine):
        named = {**item, "name": flat_name(item["namespace"], item.get("name"))}
        del named["namespace"]
        return named
    return item if knows_custom(engine) else _as_function(item)


def _readable(item: Item, engine: EngineKind) -> Item | None:
    """Reasoning without what only its maker can decrypt, which makes engines refuse the request; None when nothing is left."""
    shaped = {name: value for name, value in item.items() if name != "encrypted_content"}
    content, summary = item.get("content"), item.get("summary")
    if content:
        return shaped
    if not summary or not isinstance(summary, list):
        return None
    if engine.name in _NEED_REASONING_CONTENT:
        shaped["content"] = [{**part, "type": "reasoning_text"} for part in summary if isinstance(part, dict)]
    return shaped


def _as_function(item: Item) -> Item:
    """A call of a tool that takes free text, and its output, for kinds that know functions alone."""
    if item.get("type") == "custom_tool_call":
        call = {name: value for name, value in item.items() if name != "input"}
        return {**call, "type": "function_call", "arguments": orjson.dumps({"input": item.get("input")}).decode()}
    if item.get("type") == "custom_tool_call_output":
        return {**item, "type": "function_call_output"}
    return item


def _move_format(body: Item) -> None:
    text = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if not isinstance(form, dict) or form.get("type") not in ("json_schema", "json_object"):
        return
    schema = {name: value for name, value in form.items() if name != "type"}
    body["response_format"] = {"type": form["type"], **({"json_schema": schema} if schema else {})}
