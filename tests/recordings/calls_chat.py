"""Recorded calls of chat and text completions: plain, streamed, tools, formats, histories, and wrong ones."""

from types import MappingProxyType
from typing import Any

from tests.recordings.recording import Call
from tests.recordings.words import (
    CALL_ID,
    EMPTY_CALL,
    HELLO,
    MODEL,
    NOTHING,
    ONE_CALL,
    PERSON,
    TOO_LONG,
    TWO_CALLS,
    WEATHER,
    WORDS_AND_CALL,
    chat_tool,
    says,
)

SHORT: dict[str, Any] = {"model": MODEL, "max_tokens": 16, "temperature": 0}
FORCED: dict[str, Any] = {"model": MODEL, "max_tokens": 96, "temperature": 0}
BOTH_TOOLS = [chat_tool(), chat_tool("get_time", NOTHING)]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": CALL_ID, "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}],
}
RESULT = {"role": "tool", "tool_call_id": CALL_ID, "content": "18 degrees, clear"}


HELLOS = (says(),)


def chat(messages: Any = HELLOS, **more: Any) -> Call:
    return Call("/v1/chat/completions", {**SHORT, "messages": list(messages), **more})


def forced(**more: Any) -> Call:
    return Call("/v1/chat/completions", {**FORCED, "messages": [says(WEATHER)], **more})


def text(prompt: Any = "Once upon a time", **more: Any) -> Call:
    return Call("/v1/completions", {**SHORT, "prompt": prompt, **more})


def with_streams(calls: dict[str, Call]) -> dict[str, Call]:
    """Each call, and the same as a stream with usage."""
    streams = {
        f"{case}-stream": Call(call.path, {**call.body, "stream": True, "stream_options": {"include_usage": True}})
        for case, call in calls.items()
    }
    return {**calls, **streams}


_BOTH_WAYS = {
    "chat-plain": chat(),
    "chat-length": chat(max_tokens=3),
    "chat-ends": chat([says("Reply with one word: yes or no?")], max_tokens=200),
    "chat-n2": chat(n=2, temperature=1, seed=7),
    "chat-stop": chat([says("Count: one, two, three, four, five.")], stop=["e"], max_tokens=40),
    "chat-seed": chat(seed=42, temperature=1),
    "chat-logprobs": chat(logprobs=True, top_logprobs=2, max_tokens=4),
    "chat-many-bytes": chat(structured_outputs={"regex": "héllo 日本語 😀🇫🇷"}, max_tokens=40),
    "chat-json-object": chat([says("A JSON object with the key a.")], response_format={"type": "json_object"}, max_tokens=48),
    "chat-json-schema": chat([says("A person.")], response_format=SCHEMA, max_tokens=48),
    "chat-tools-auto": forced(tools=BOTH_TOOLS, **ONE_CALL),
    "chat-tools-auto-with-words": forced(tools=BOTH_TOOLS, **WORDS_AND_CALL),
    "chat-tools-auto-two": forced(tools=BOTH_TOOLS, max_tokens=160, **TWO_CALLS),
    "chat-tools-auto-empty-arguments": forced(tools=BOTH_TOOLS, **EMPTY_CALL),
    "chat-tools-auto-cut": forced(tools=BOTH_TOOLS, max_tokens=18, **ONE_CALL),
    "chat-tools-auto-unused": forced(tools=BOTH_TOOLS, max_tokens=8),
    "chat-tools-required": forced(tools=BOTH_TOOLS, tool_choice="required"),
    "chat-tools-named": forced(tools=BOTH_TOOLS, tool_choice=NAMED),
    "chat-tools-none": forced(tools=BOTH_TOOLS, tool_choice="none", max_tokens=8),
    "chat-tool-result": chat([says(WEATHER), CALLED, RESULT], tools=BOTH_TOOLS),
}
_ONE_WAY = {
    "chat-stream-without-usage": chat(stream=True),
    "chat-stream-usage-off": chat(stream=True, stream_options={"include_usage": False}),
    "chat-stream-continuous-usage": chat(stream=True, stream_options={"include_usage": True, "continuous_usage_stats": True}),
    "chat-developer": chat([says("Be brief.", "developer"), says()]),
    "chat-system-later": chat([says(), says("Be brief.", "system")]),
    "chat-parts": chat([says([{"type": "text", "text": "Be brief."}], "system"), says([{"type": "text", "text": HELLO}])]),
    "chat-max-completion-tokens": Call(
        "/v1/chat/completions", {"model": MODEL, "messages": [says()], "max_completion_tokens": 4, "temperature": 0}
    ),
    "chat-unknown-fields": chat(metadata={"a": "b"}, store=False, service_tier="auto", verbosity="low", never_heard_of=1),
    "chat-parallel-tool-calls-off": forced(tools=BOTH_TOOLS, parallel_tool_calls=False, max_tokens=8),
    "chat-reasoning-effort": chat(reasoning_effort="low"),
    "chat-guided-json": chat(guided_json=PERSON),
    "chat-functions-legacy": forced(functions=[chat_tool()["function"]], function_call="auto", max_tokens=8),
    "chat-logit-bias": chat(logit_bias={"28120": -100}),
    "chat-wrong-json": Call("/v1/chat/completions", b'{"model": "'),
    "chat-wrong-no-messages": Call("/v1/chat/completions", {"model": MODEL}),
    "chat-wrong-empty-messages": chat([]),
    "chat-wrong-role": chat([says(role="robot")]),
    "chat-wrong-temperature": chat(temperature="hot"),
    "chat-wrong-negative-max-tokens": chat(max_tokens=-1),
    "chat-wrong-top-logprobs": chat(logprobs=True, top_logprobs=21),
    "chat-wrong-stream-options": chat(stream_options={"include_usage": True}),
    "chat-wrong-model": chat(model="no-such-model"),
    "chat-wrong-schema": chat(response_format={"type": "json_schema"}),
    "chat-wrong-tool-name": forced(tools=BOTH_TOOLS, tool_choice={"type": "function", "function": {"name": "no_such"}}),
    "chat-wrong-tools-missing": forced(tool_choice="required"),
    "chat-wrong-image": chat([says([{"type": "image_url", "image_url": {"url": PIXEL}}])]),
    "chat-too-long": chat([says(TOO_LONG)]),
    "chat-too-long-stream": chat([says(TOO_LONG)], stream=True),
    "chat-max-tokens-over-context": chat(max_tokens=100_000),
    "completions-many": text(["Once", "Twice"]),
    "completions-echo": text(echo=True, max_tokens=4),
    "completions-suffix": text(suffix="the end"),
    "completions-token-ids": text([504, 2399, 253], max_tokens=4),
    "completions-wrong-model": text(model="no-such-model"),
    "completions-wrong-no-prompt": Call("/v1/completions", SHORT),
    "completions-too-long": text(TOO_LONG),
}
_TEXT_BOTH_WAYS = {
    "completions-plain": text(),
    "completions-n2": text(n=2, temperature=1, seed=7),
    "completions-logprobs": text(logprobs=2, max_tokens=4),
    "completions-stop": text("one two three four one two three four one two", stop=["four"], max_tokens=24),
}
CALLS = MappingProxyType({**with_streams(_BOTH_WAYS), **_ONE_WAY, **with_streams(_TEXT_BOTH_WAYS)})
