"""A body of the other API, posted to chat, is a chat."""

from typing import Any

import orjson
import pytest

from gateway.api.call import Call, read_call
from gateway.api.chat import CHAT
from gateway.errors import Refusal

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}


def call(**fields: Any) -> Call:
    body = {"model": "m", **fields}
    return read_call(CHAT, body, len(orjson.dumps(body)))


def test_text_is_a_message_of_the_user() -> None:
    assert call(input="hi").body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_a_turn_with_tools_is_carried_over() -> None:
    items = [
        {"role": "system", "content": "You edit."},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"x"}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "***"},
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Done"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "There."}]},
    ]
    made = [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"x"}'}},
        {"id": "c2", "type": "function", "function": {"name": "patch", "arguments": '{"input":"***"}'}},
    ]
    assert call(input=items, instructions="Be kind.").body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": "You edit."},
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_call_id": "c2", "content": "Done"},
        {"role": "assistant", "content": "There."},
    ]


def test_settings_get_the_names_that_chat_has_for_them() -> None:
    flat = {"type": "function", "name": "read", "description": "Reads.", "parameters": PARAMETERS, "strict": False}
    body = call(
        input="hi", tools=[flat, {"type": "web_search"}], tool_choice={"type": "function", "name": "read"}, max_output_tokens=7,
        text={"format": {"type": "json_schema", "name": "a", "schema": PARAMETERS}}, reasoning={"effort": "low"},
        store=False, include=["reasoning.encrypted_content"], truncation="auto", temperature=0.5, stream=True, never_heard_of=1,
    ).body  # fmt: skip
    assert body == {
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, "temperature": 0.5, "never_heard_of": 1,
        "tools": [{"type": "function", "function": {name: value for name, value in flat.items() if name != "type"}}],
        "tool_choice": {"type": "function", "function": {"name": "read"}}, "max_completion_tokens": 7, "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": PARAMETERS}},
    }  # fmt: skip


def test_its_limit_and_its_images_are_counted_as_chats() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    asked = call(input=[{"role": "user", "content": [image, {"type": "input_text", "text": "see"}]}], max_output_tokens=9)
    assert (asked.images, asked.output_tokens) == (1, 9)
    assert asked.body["messages"][0]["content"][0] == {
        "type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "auto"},
    }  # fmt: skip


@pytest.mark.parametrize("given", [5, None, ["hi"], {"role": "user"}])
def test_input_of_no_shape_is_refused(given: Any) -> None:
    with pytest.raises(Refusal) as caught:
        call(input=given)
    assert (caught.value.status, caught.value.param) == (400, "input")


def test_what_needs_a_store_is_refused_here_too() -> None:
    with pytest.raises(Refusal) as caught:
        call(input="hi", previous_response_id="resp_1")
    assert caught.value.code == "not_stored"


def test_messages_win_over_input() -> None:
    messages = [{"role": "user", "content": "hi"}]
    assert call(messages=messages, input="x").body == {"model": "m", "messages": messages, "input": "x"}
