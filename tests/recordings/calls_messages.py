"""Recorded calls of Anthropic's Messages API: plain, streamed, tools, Claude Code's shapes, counting, and wrong ones."""

from types import MappingProxyType
from typing import Any

from tests.recordings.recording import Call
from tests.recordings.words import (
    BILLING_LINE,
    CALL_ID,
    HELLO,
    MODEL,
    NOTHING,
    ONE_CALL,
    TOO_LONG,
    WEATHER,
    WORDS_AND_CALL,
    message_tool,
    says,
)

TOOLS = [message_tool(), message_tool("get_time", NOTHING)]
CACHED = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": BILLING_LINE}, {"type": "text", "text": "You are a coding agent.", **CACHED}]
USED = says([{"type": "tool_use", "id": CALL_ID, "name": "get_weather", "input": {"city": "Paris"}}], "assistant")
RESULT = says([{"type": "tool_result", "tool_use_id": CALL_ID, "content": "18 degrees, clear"}])
RESULT_OF_PARTS = says(
    [{"type": "tool_result", "tool_use_id": CALL_ID, "content": [{"type": "text", "text": "18"}], "is_error": False, **CACHED}]
)
THOUGHT = says([{"type": "thinking", "thinking": "Short.", "signature": "c2ln"}, {"type": "text", "text": "Hello!"}], "assistant")


HELLOS = (says(),)
THINKING = {"type": "enabled", "budget_tokens": 1024}
CODING_AGENT: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 8,
    "stream": True,
    "system": SYSTEM,
    "messages": [says([{"type": "text", "text": "Hi.", **CACHED}]), says("Be brief.", "system")],
    "tools": [{**TOOLS[0], **CACHED}],
    "metadata": {"user_id": "user_0"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
}


def message(messages: Any = HELLOS, **more: Any) -> Call:
    body = {"model": MODEL, "messages": list(messages), "max_tokens": 16, "temperature": 0}
    return Call("/v1/messages", {**body, **more})


def forced(**more: Any) -> Call:
    return message([says(WEATHER)], max_tokens=96, tools=TOOLS, **more)


def count(messages: Any = HELLOS, **more: Any) -> Call:
    return Call("/v1/messages/count_tokens", {"model": MODEL, "messages": list(messages), **more})


def with_streams(calls: dict[str, Call]) -> dict[str, Call]:
    return {**calls, **{f"{case}-stream": Call(call.path, {**call.body, "stream": True}) for case, call in calls.items()}}


_BOTH_WAYS = {
    "messages-plain": message(),
    "messages-ends": message([says("Reply with one word: yes or no?")], max_tokens=200),
    "messages-system": message(system="Be brief."),
    "messages-stop": message([says("Count: one, two, three, four, five.")], stop_sequences=["e"], max_tokens=40),
    "messages-tools-auto": forced(**ONE_CALL),
    "messages-tools-auto-with-words": forced(**WORDS_AND_CALL),
    "messages-tools-any": forced(tool_choice={"type": "any"}),
    "messages-tools-named": forced(tool_choice={"type": "tool", "name": "get_weather"}),
    "messages-tool-result": message([says(WEATHER), USED, RESULT], tools=TOOLS),
}
_ONE_WAY = {
    "messages-coding-agent-stream": Call("/v1/messages?beta=true", CODING_AGENT),
    "messages-coding-agent-thinking-stream": Call(
        "/v1/messages?beta=true", {**CODING_AGENT, "thinking": THINKING, "max_tokens": 1032}
    ),
    "messages-system-later": message([says(), says("Be brief.", "system")]),
    "messages-result-of-parts": message([says(WEATHER), USED, RESULT_OF_PARTS], tools=TOOLS),
    "messages-thinking": message(thinking=THINKING, max_tokens=1040, stop_sequences=["o"]),
    "messages-thinking-adaptive": message(thinking={"type": "adaptive"}, output_config={"effort": "low"}),
    "messages-thought-replayed": message([says(), THOUGHT, says("Again.")]),
    "messages-prefill": message([says(), says("Hel", "assistant")]),
    "messages-tool-server": message(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "messages-tool-none": forced(tool_choice={"type": "none"}),
    "messages-unknown-fields": message(metadata={"user_id": "u"}, service_tier="auto", never_heard_of=1),
    "messages-image": message(
        [says([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}])]
    ),
    "messages-wrong-no-max-tokens": Call("/v1/messages", {"model": MODEL, "messages": [says(HELLO)]}),
    "messages-wrong-role": message([says(role="robot")]),
    "messages-wrong-model": message(model="no-such-model"),
    "messages-wrong-json": Call("/v1/messages", b"{"),
    "messages-wrong-empty": message([]),
    "messages-too-long": message([says(TOO_LONG)]),
    "messages-too-long-stream": message([says(TOO_LONG)], stream=True),
    "messages-max-tokens-over-context": message(max_tokens=100_000),
    "messages-count": count(),
    "messages-count-tools": count([says(WEATHER), USED, RESULT], system=SYSTEM, tools=TOOLS),
    "messages-count-wrong": count("no list"),
    "messages-count-wrong-model": count(model="no-such-model"),
}
CALLS = MappingProxyType({**with_streams(_BOTH_WAYS), **_ONE_WAY})
