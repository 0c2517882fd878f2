"""What an engine's tokens begin with: a call's words in the order in which chat templates put them, without what is no word."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

Body = dict[str, Any]
Spoken = Callable[[Body, bool], Iterator[bytes]]
"""The pieces of a body's prompt; with the flag, the model's template puts tools before everything."""

# What templates write before the first message, or steer by from there.
_SETTINGS = ("chat_template_kwargs", "reasoning_effort", "documents")
# Marks on parts that move from turn to turn while the words stay, and names that say nothing.
_NO_WORDS = frozenset({"cache_control", "id", "status", "annotations", "logprobs"})
# Of a part that is larger, an image's data most often, the hash stands for the part: it is few tokens.
_PART_MAX = 4096


def spoken_chat(body: Body, tools_first: bool) -> Iterator[bytes]:
    yield from _settings(body)
    yield from _told(body["messages"], body.get("tools"), tools_first)


def spoken_message(body: Body, tools_first: bool) -> Iterator[bytes]:
    """Anthropic's. The line that Claude Code changes with each request has been taken out of `system` by whoever asks."""
    tools = body.get("tools")
    if tools and tools_first:
        yield orjson.dumps(tools)
    yield from _words(body.get("system"))
    if tools and not tools_first:
        yield orjson.dumps(tools)
    for message in body["messages"]:
        yield from _message(message)


def spoken_response(body: Body, tools_first: bool) -> Iterator[bytes]:
    yield from _settings(body)
    given = body["input"]
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    if instructions := body.get("instructions"):
        items = [{"role": "system", "content": instructions}, *items]
    yield from _told(items, body.get("tools"), tools_first)


def spoken_prompt(body: Body, _: bool) -> Iterator[bytes]:
    """Of several prompts the first: they are computed one by one."""
    prompt = body["prompt"]
    first = prompt[0] if isinstance(prompt, list) and not isinstance(prompt[0], int) else prompt
    yield first.encode() if isinstance(first, str) else orjson.dumps(first)


def nothing_spoken(_: Body, __: bool) -> Iterator[bytes]:
    return iter(())


def _settings(body: Body) -> Iterator[bytes]:
    for name in _SETTINGS:
        if name in body:
            yield orjson.dumps(body[name])


def _told(messages: list[Body], tools: object, tools_first: bool) -> Iterator[bytes]:
    """System messages that come first stand before the tools, in most templates."""
    at = 0
    if tools and not tools_first:
        while at < len(messages) and messages[at].get("role") in ("system", "developer"):
            yield from _message(messages[at])
            at += 1
    if tools:
        yield orjson.dumps(tools)
    for index in range(at, len(messages)):
        yield from _message(messages[index])


def _message(message: Body) -> Iterator[bytes]:
    role = message.get("role")
    if role is None:  # a call of a tool, or its output, that is an item of its own
        yield _part(message)
        return
    yield role.encode()
    yield from _words(message.get("content"))
    if calls := message.get("tool_calls"):
        yield orjson.dumps(calls)


def _words(content: object) -> Iterator[bytes]:
    if isinstance(content, str):
        yield content.encode()
    elif isinstance(content, list):
        for part in content:
            text = part.get("text") if isinstance(part, dict) else None
            yield text.encode() if isinstance(text, str) else _part(part)


def _part(part: object) -> bytes:
    if isinstance(part, dict):
        if part.get("type") in ("thinking", "redacted_thinking", "reasoning"):
            return b""  # templates leave out what was thought before
        if isinstance(part.get("content"), list):  # a tool's result, with parts of its own
            return b"\0".join(_words(part["content"]))
        part = {name: value for name, value in part.items() if name not in _NO_WORDS}
    data = orjson.dumps(part)
    return data if len(data) <= _PART_MAX else b"%d" % hash(data)
