"""Recorded calls of the Responses API: plain, streamed, tools, Codex's shapes, replayed items, and wrong ones."""

from types import MappingProxyType
from typing import Any

from tests.recordings.recording import Call
from tests.recordings.words import (
    CALL_ID,
    HELLO,
    MODEL,
    NOTHING,
    ONE_CALL,
    PERSON,
    TOO_LONG,
    WEATHER,
    WORDS_AND_CALL,
    response_tool,
)

TOOLS = [response_tool(), response_tool("get_time", NOTHING)]
NAMED = {"type": "function", "name": "get_weather"}
SCHEMA = {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": PERSON}}


def says(text: str = HELLO, role: str = "user", part: str = "input_text") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}


CALLED = {"type": "function_call", "call_id": CALL_ID, "name": "get_weather", "arguments": '{"city": "Paris"}'}
RESULT = {"type": "function_call_output", "call_id": CALL_ID, "output": "18 degrees, clear"}
REASONED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Weather is asked."}],
    "encrypted_content": None,
}
# What Codex sends with every turn beside functions.
NAMESPACE = {"type": "namespace", "name": "mcp__notes", "description": "Notes", "tools": [response_tool("read_note", NOTHING)]}
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Edit files", "format": {"type": "text"}}
CODEX: dict[str, Any] = {
    "model": MODEL,
    "instructions": "You are a coding agent.",
    "input": [says("Use the shell.", "developer"), says("Hi.", "user")],
    "tools": [*TOOLS, NAMESPACE, {"type": "web_search"}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0193a1b2-0000-7000-8000-000000000000",
    "client_metadata": {"x-codex-installation-id": "i"},
    "max_output_tokens": 8,
}


def respond(input: Any = HELLO, **more: Any) -> Call:  # noqa: A002 - the field's name
    return Call("/v1/responses", {"model": MODEL, "input": input, "max_output_tokens": 16, "temperature": 0, **more})


def forced(**more: Any) -> Call:
    return respond(WEATHER, max_output_tokens=96, tools=TOOLS, **more)


def codex(**changes: Any) -> Call:
    return Call("/v1/responses", {**CODEX, **changes})


def with_streams(calls: dict[str, Call]) -> dict[str, Call]:
    return {**calls, **{f"{case}-stream": Call(call.path, {**call.body, "stream": True}) for case, call in calls.items()}}


_BOTH_WAYS = {
    "responses-plain": respond(),
    "responses-ends": respond("Reply with one word: yes or no?", max_output_tokens=200),
    "responses-incomplete": respond(max_output_tokens=3),
    "responses-instructions": respond([says("Be brief.", "developer"), says()], instructions="Be kind."),
    "responses-json-schema": respond("A person.", text=SCHEMA, max_output_tokens=48),
    "responses-tools-auto": forced(**ONE_CALL),
    "responses-tools-auto-with-words": forced(**WORDS_AND_CALL),
    "responses-tools-required": forced(tool_choice="required"),
    "responses-tools-named": forced(tool_choice=NAMED),
    "responses-tool-result": respond([says(WEATHER), CALLED, RESULT], tools=TOOLS),
}
_ONE_WAY = {
    "responses-reasoning-replayed": respond([says(WEATHER), REASONED, CALLED, RESULT, says("Thanks.")], tools=TOOLS),
    "responses-reasoning-encrypted": respond(
        [says(WEATHER), {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}, says("Go on.")]
    ),
    "responses-answer-replayed": respond([says(), says("Hello!", "assistant", "output_text"), says("Again.")]),
    "responses-answer-replayed-with-id": respond(
        [says(), {**says("Hello!", "assistant", "output_text"), "id": "msg_1", "status": "completed"}, says("Again.")]
    ),
    "responses-easy-messages": respond([{"role": "system", "content": "Be brief."}, {"role": "user", "content": HELLO}]),
    "responses-result-of-parts": respond([says(WEATHER), CALLED, {**RESULT, "output": [{"type": "input_text", "text": "18"}]}]),
    "responses-store": respond(store=True),
    "responses-previous-unknown": respond(previous_response_id="resp_no_such"),
    "responses-background": respond(background=True, store=True),
    "responses-conversation": respond(conversation="conv_1"),
    "responses-codex": codex(),
    "responses-codex-functions": codex(tools=TOOLS),
    "responses-tool-namespace": codex(tools=[NAMESPACE]),
    "responses-tool-web-search": codex(tools=[{"type": "web_search"}]),
    "responses-tool-custom": codex(tools=[CUSTOM]),
    "responses-tool-local-shell": codex(tools=[{"type": "local_shell"}]),
    "responses-tool-unknown": codex(tools=[{"type": "never_heard_of"}]),
    "responses-custom-replayed": respond(
        [
            says("Edit."),
            {"type": "custom_tool_call", "call_id": CALL_ID, "name": "apply_patch", "input": "*** Begin Patch"},
            {"type": "custom_tool_call_output", "call_id": CALL_ID, "output": "Done"},
        ]
    ),
    "responses-json-object": respond("A JSON object.", text={"format": {"type": "json_object"}}, max_output_tokens=32),
    "responses-unknown-fields": respond(metadata={"a": "b"}, truncation="auto", service_tier="auto", never_heard_of=1),
    "responses-wrong-no-input": Call("/v1/responses", {"model": MODEL}),
    "responses-wrong-item": respond([{"type": "never_heard_of"}]),
    "responses-wrong-model": respond(model="no-such-model"),
    "responses-wrong-json": Call("/v1/responses", b"{"),
    "responses-too-long": respond(TOO_LONG),
    "responses-too-long-stream": respond(TOO_LONG, stream=True),
    "responses-max-tokens-over-context": respond(max_output_tokens=100_000),
    "responses-image": respond(
        [{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}]
    ),
    "responses-get-unknown": Call("/v1/responses/resp_no_such", method="GET"),
}
CALLS = MappingProxyType({**with_streams(_BOTH_WAYS), **_ONE_WAY})
