"""What an engine's tokens begin with: a call's words in the order in which chat templates put them, without what is no word."""

from collections.abc import Callable
from typing import Any

import orjson

Body = dict[str, Any]
Pieces = list[bytes]
Spoken = Callable[[Body, bool], Pieces]
"""The pieces of a body's prompt; with the flag, the model's template puts tools before everything."""

# What templates write before the first message, or steer by from there.
_SETTINGS = frozenset({"chat_template_kwargs", "reasoning_effort", "documents"})
# Marks on parts that move from turn to turn while the words stay, and names that say nothing.
_NO_WORDS = frozenset({"cache_control", "id", "status", "annotations", "logprobs"})
# Of a part that is larger, an image's data most often, the hash stands for the part: it is few tokens.
_PART_MAX = 4096


def spoken_chat(body: Body, tools_first: bool) -> Pieces:
    pieces = _settings(body)
    _tell(pieces, body["messages"], body.get("tools"), tools_first)
    return pieces


def spoken_message(body: Body, tools_first: bool) -> Pieces:
    """Anthropic's. The line that Claude Code changes with each request has been taken out of `system` by whoever asks."""
    pieces, tools = Pieces(), body.get("tools")
    if tools and tools_first:
        pieces.append(orjson.dumps(tools))
    _say(pieces, body.get("system"))
    if tools and not tools_first:
        pieces.append(orjson.dumps(tools))
    for message in body["messages"]:
        _add(pieces, message)
    return pieces


def spoken_response(body: Body, tools_first: bool) -> Pieces:
    pieces, given = _settings(body), body["input"]
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    if instructions := body.get("instructions"):
        items = [{"role": "system", "content": instructions}, *items]
    _tell(pieces, items, body.get("tools"), tools_first)
    return pieces


def spoken_prompt(body: Body, _: bool) -> Pieces:
    """Of several prompts the first: they are computed one by one."""
    prompt = body["prompt"]
    first = prompt[0] if isinstance(prompt, list) and not isinstance(prompt[0], int) else prompt
    return [first.encode() if isinstance(first, str) else orjson.dumps(first)]


def nothing_spoken(_: Body, __: bool) -> Pieces:
    return []


def _settings(body: Body) -> Pieces:
    if body.keys().isdisjoint(_SETTINGS):
        return []
    return [orjson.dumps(body[name]) for name in sorted(_SETTINGS) if name in body]


def _tell(pieces: Pieces, messages: list[Body], tools: object, tools_first: bool) -> None:
    """System messages that come first stand before the tools, in most templates."""
    for message in messages:
        if tools and (tools_first or message.get("role") not in ("system", "developer")):
            pieces.append(orjson.dumps(tools))
            tools = None
        _add(pieces, message)
    if tools:
        pieces.append(orjson.dumps(tools))


def _add(pieces: Pieces, message: Body) -> None:
    role = message.get("role")
    if role is None:  # a call of a tool, or its output, that is an item of its own
        pieces.append(_part(message))
        return
    pieces.append(role.encode())
    _say(pieces, message.get("content"))
    if calls := message.get("tool_calls"):
        pieces.append(orjson.dumps(calls))


def _say(pieces: Pieces, content: object) -> None:
    if isinstance(content, str):
        pieces.append(content.encode())
    elif isinstance(content, list):
        for part in content:
            text = part.get("text") if isinstance(part, dict) else None
            pieces.append(text.encode() if isinstance(text, str) else _part(part))


def _part(part: object) -> bytes:
    if isinstance(part, dict):
        if part.get("type") in ("thinking", "redacted_thinking", "reasoning"):
            return b""  # templates leave out what was thought before
        if isinstance(part.get("content"), list):  # a tool's result, with parts of its own
            pieces = Pieces()
            _say(pieces, part["content"])
            return b"\0".join(pieces)
        part = {name: value for name, value in part.items() if name not in _NO_WORDS}
    data = orjson.dumps(part)
    return data if len(data) <= _PART_MAX else b"%d" % hash(data)
