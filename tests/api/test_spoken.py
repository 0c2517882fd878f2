"""What is looked for in prefix caches is what an engine's tokens begin with: the whole conversation, in the template's order."""

from typing import Any

import orjson
import pytest

from backends.prefix import read_prompt
from gateway.api.call import read_call
from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.endpoint import Endpoint
from gateway.api.endpoints import ENDPOINTS
from gateway.api.messages import MESSAGES
from gateway.api.responses import RESPONSES

LONG = {name: f"{name} " * 300 for name in ("system", "one", "two", "three", "four", "tool")}
SYSTEM = {"role": "system", "content": LONG["system"]}
TURNS = [{"role": ("user", "assistant")[at % 2], "content": LONG[name]} for at, name in enumerate(("one", "two", "three"))]
TOOLS = [{"type": "function", "function": {"name": "f", "description": LONG["tool"]}}]


def said(body: dict[str, Any], endpoint: Endpoint = CHAT, *, tools_first: bool = False) -> bytes:
    call = read_call(endpoint, orjson.loads(orjson.dumps({"model": "m", **body})), 0)
    return b"\0".join(endpoint.spoken(call.body, tools_first))


def alike(one: bytes, other: bytes) -> int:
    """In blocks."""
    pairs = zip(read_prompt(one).chain, read_prompt(other).chain, strict=False)
    return sum(left == right for left, right in pairs)


def test_sglang_26263_a_conversation_is_known_by_all_of_its_turns() -> None:
    """Only the first message was looked at: every conversation of an application looked the same."""
    shorter, longer = said({"messages": [SYSTEM, *TURNS[:1]]}), said({"messages": [SYSTEM, *TURNS]})
    assert longer.startswith(shorter)
    other = said({"messages": [SYSTEM, {"role": "user", "content": LONG["four"]}, *TURNS[1:]]})
    assert alike(longer, other) == len(LONG["system"]) // 256
    assert alike(shorter, longer) == len(shorter) // 256


def test_the_system_message_stands_before_the_tools_or_after_them_as_the_template_has_it() -> None:
    body = {"messages": [SYSTEM, TURNS[0]], "tools": TOOLS}
    for tools_first, order in ((False, ("system", "tool", "one")), (True, ("tool", "system", "one"))):
        text = said(body, tools_first=tools_first)
        places = [text.index(LONG[name].encode()) for name in order]
        assert places == sorted(places)


def test_what_a_template_writes_before_all_messages_changes_the_beginning() -> None:
    plain = said({"messages": [SYSTEM]})
    assert alike(plain, said({"messages": [SYSTEM], "reasoning_effort": "high"})) == 0
    assert alike(plain, said({"messages": [SYSTEM], "temperature": 0.3, "max_tokens": 5, "user": "u"})) == len(plain) // 256


def test_marks_of_a_cache_that_move_from_turn_to_turn_are_no_words() -> None:
    def turn(index: int, *, marked: bool) -> dict[str, Any]:
        mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
        return {"role": TURNS[index]["role"], "content": [{"type": "text", "text": TURNS[index]["content"], **mark}]}

    head = {"max_tokens": 5, "system": [{"type": "text", "text": LONG["system"]}]}
    before = said({**head, "messages": [turn(0, marked=True)]}, MESSAGES)
    after = said({**head, "messages": [turn(0, marked=False), turn(1, marked=False), turn(2, marked=True)]}, MESSAGES)
    assert after.startswith(before)


def test_the_line_that_changes_with_every_request_is_left_out() -> None:
    def message(number: int) -> bytes:
        line = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{number}; cch={number}a;"}
        system = [line, {"type": "text", "text": LONG["system"]}]
        return said({"max_tokens": 5, "system": system, "messages": TURNS[:1]}, MESSAGES)

    assert message(1) == message(2)


def test_a_tools_result_is_read_by_its_words_and_its_call_by_all_of_it() -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": LONG["tool"]}]}
    messages = [TURNS[0], {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    text = said({"max_tokens": 5, "messages": messages, "tools": []}, MESSAGES)
    assert b'"name":"f"' in text
    assert LONG["tool"].encode() in text


def test_responses_begin_with_their_instructions() -> None:
    text = said({"input": LONG["one"], "instructions": LONG["system"]}, RESPONSES)
    items = [{"role": "user", "content": [{"type": "input_text", "text": LONG["one"]}]}]
    assert said({"input": items, "instructions": LONG["system"]}, RESPONSES) == text
    assert text.index(b"system") < text.index(b"one")
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "fc_1", "status": "completed"}
    again = said({"input": [*items, call], "instructions": LONG["system"]}, RESPONSES)
    assert again.startswith(text)
    assert again == said({"input": [*items, {**call, "id": "fc_2"}], "instructions": LONG["system"]}, RESPONSES)


@pytest.mark.parametrize(
    ("prompt", "begins"), [("ab", b"ab"), (["cd", "ef"], b"cd"), ([1, 2, 3], b"[1,2,3]"), ([[4, 5], [6]], b"[4,5]")]
)
def test_of_several_prompts_the_first(prompt: object, begins: bytes) -> None:
    assert said({"prompt": prompt}, COMPLETIONS) == begins


def test_an_image_is_a_few_bytes_and_still_itself() -> None:
    def shown(data: str) -> bytes:
        url = {"url": f"data:image/png;base64,{data}"}
        return said({"messages": [SYSTEM, {"role": "user", "content": [{"type": "image_url", "image_url": url}]}]})

    big = "A" * 1_000_000
    assert len(shown(big)) < len(LONG["system"]) + 100
    assert shown(big) == shown(big)
    assert shown(big) != shown(big[:-1] + "B")


def test_what_is_not_generated_has_no_prefix() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.input_field not in ("messages", "prompt") and endpoint is not RESPONSES:
            assert endpoint.spoken({"input": "x"}, False) == []


def test_parts_of_any_kind_are_read_without_a_fault() -> None:
    odd: list[Any] = [{"type": "text"}, {"text": 5}, {"type": "input_audio", "input_audio": {"data": "AA"}}, {}]
    assert said({"messages": [{"role": "user", "content": odd}, {"role": "assistant", "content": None}]})
