"""What is asked of `/v1/responses`, and what an engine of each kind gets of it."""

import copy
from typing import Any

import orjson
import pytest

from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api.call import Call, read_call, text_bytes
from gateway.api.responses import RESPONSES
from gateway.errors import Refusal

DATA = "data:image/png;base64,AAAA"
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
NAMESPACE = {"type": "namespace", "name": "notes", "description": "Notes", "tools": [{**FUNCTION, "name": "read"}]}
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Edit."}
GRAMMAR = {**CUSTOM, "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}
USER = {"role": "user", "content": "hi"}


def call(given: Any = "hi", **fields: Any) -> Call:
    body = {"model": "m", "input": given, **fields}
    return read_call(RESPONSES, body, len(orjson.dumps(body)))


def sent(given: Any = "hi", kind: str = "vllm", **fields: Any) -> dict[str, Any]:
    """What an engine gets."""
    body = call(given, **fields).body
    before = copy.deepcopy(body)
    edited = dict(body)
    replica = Replica.at("http://127.0.0.1:1", name="r", model="m", engine=ENGINE_KINDS[kind], slots=1)
    RESPONSES.edit(edited, replica, False)
    assert body == before  # another replica may get it next
    return edited


def refused(given: Any = "hi", **fields: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call(given, **fields)
    assert caught.value.status == 400
    return caught.value


@pytest.mark.parametrize(
    "given", ["hi", [USER], [{"type": "message", **USER}], [{"type": "function_call_output", "call_id": "c", "output": "x"}]]
)
def test_input_is_a_string_or_a_list_of_items(given: Any) -> None:
    asked = call(given)
    assert (asked.generations, asked.images, asked.items) == (1, 0, 1)


@pytest.mark.parametrize("given", ["", [], None, 5, {"role": "user"}])
def test_other_input_is_refused(given: Any) -> None:
    assert refused(given).param == "input"


@pytest.mark.parametrize(("item", "param"), [("hi", "input[1]"), ({"role": "robot"}, "input[1].role"), ({}, "input[1].role")])
def test_a_wrong_item_is_named(item: Any, param: str) -> None:
    assert refused([USER, item]).param == param


@pytest.mark.parametrize(
    ("field", "value"),
    [("previous_response_id", "resp_1"), ("conversation", {"id": "conv_1"}), ("background", True), ("prompt", {"id": "pmpt_1"})],
)
def test_what_needs_a_store_is_refused_with_what_to_send_instead(field: str, value: Any) -> None:
    refusal = refused(**{field: value})
    assert (refusal.param, refusal.code) == (field, "not_stored")
    assert "nothing is stored here" in refusal.message
    for nothing in (None, False, ""):
        assert field not in sent("hi", "vllm", **{field: nothing})


def test_an_item_or_a_file_by_reference_is_refused() -> None:
    assert refused([USER, {"type": "item_reference", "id": "msg_1"}]).code == "not_stored"
    part = {"type": "input_image", "file_id": "file_1"}
    assert refused([{"role": "user", "content": [part]}]).param == "input[0].content[0]"


def test_nothing_is_stored_whatever_is_asked() -> None:
    assert sent(store=True)["store"] is False
    assert sent()["store"] is False


def test_what_other_apis_call_a_count_or_a_limit_counts_nothing_and_reaches_no_engine() -> None:
    fields: dict[str, Any] = {
        "n": 5,
        "best_of": 7,
        "max_tokens": 10**6,
        "messages": [USER],
        "previous_input_messages": [USER],
        "json_schema": {},
    }
    assert call(**fields).generations == 1
    assert not fields.keys() & sent(**fields).keys()


def test_codex_fields_are_accepted_and_only_what_can_be_included_is_asked_for() -> None:
    body = sent(
        prompt_cache_key="k", client_metadata={"a": "b"}, include=["reasoning.encrypted_content"], reasoning={"summary": "auto"}
    )
    assert "include" not in body
    assert (body["prompt_cache_key"], body["client_metadata"], body["reasoning"]) == ("k", {"a": "b"}, {"summary": "auto"})
    logprobs = ["message.output_text.logprobs"]
    assert sent(include=[*logprobs, "web_search_call.action.sources"])["include"] == logprobs


def test_images_are_counted_wherever_they_are_and_are_no_text() -> None:
    image = {"type": "input_image", "image_url": DATA + "A" * 1000}
    asked = call(
        [
            {"role": "user", "content": [{"type": "input_text", "text": "see"}, image, image]},
            {"type": "function_call_output", "call_id": "c", "output": [image]},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": DATA}},
        ]
    )
    assert asked.images == 4
    assert text_bytes(asked) < 600


def test_an_image_by_address_is_noted_for_fetching_and_put_in_as_data() -> None:
    asked = call([{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}]}])
    (image,) = asked.addressed
    assert (image.place, image.url) == ("input[0].content[0].image_url", "https://example.com/a.png")
    image.put("image/png", "AAAA")
    assert asked.body["input"][0]["content"][0]["image_url"] == DATA


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_file", "file_url": "http://10.0.0.1/x"},
        {"type": "video_url", "video_url": {"url": "http://10.0.0.1/x"}},
        {"type": "input_image", "image_url": "file:///etc/passwd"},
    ],
)
@pytest.mark.parametrize("field", ["content", "output"])
def test_no_engine_gets_to_see_an_address(part: dict[str, Any], field: str) -> None:
    item = {"role": "user", "type": "message"} if field == "content" else {"type": "function_call_output", "call_id": "c"}
    refusal = refused([{**item, field: [part]}])
    assert refusal.param is not None
    assert refusal.param.startswith(f"input[0].{field}[0].")


def test_tools_that_a_vendor_hosts_are_left_out_and_the_others_pass() -> None:
    hosted = [
        {"type": kind} for kind in ("web_search", "local_shell", "image_generation", "mcp", "code_interpreter", "never_seen")
    ]
    assert sent(tools=[FUNCTION, *hosted, NAMESPACE, CUSTOM])["tools"] == [FUNCTION, NAMESPACE, CUSTOM]
    body = sent(tools=hosted, tool_choice="auto")
    assert "tools" not in body
    assert "tool_choice" not in body


@pytest.mark.parametrize("choice", [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}, "required"])
def test_a_choice_that_no_tool_can_meet_is_refused(choice: Any) -> None:
    assert refused(tools=[{"type": "web_search"}], tool_choice=choice).code == "tool_not_served"


@pytest.mark.parametrize("include", ["x", 5, [5], {"a": 1}])
def test_include_is_a_list_of_strings(include: Any) -> None:
    assert refused(include=include).param == "include"


@pytest.mark.parametrize("tools", ["x", ["x"], {"type": "function"}, [{}], [{"type": []}]])
def test_tools_are_a_list_of_objects(tools: Any) -> None:
    assert refused(tools=tools).param == "tools"


@pytest.mark.parametrize("kind", ["llamacpp", "sglang"])
def test_a_namespace_is_unwrapped_where_an_engine_knows_none(kind: str) -> None:
    called = {"type": "function_call", "call_id": "c", "namespace": "notes", "name": "read", "arguments": "{}"}
    body = sent([USER, called], kind, tools=[FUNCTION, NAMESPACE])
    assert [tool["name"] for tool in body["tools"]] == ["f", "notes__read"]
    assert body["input"][1] == {"type": "function_call", "call_id": "c", "name": "notes__read", "arguments": "{}"}
    assert sent([USER, called], tools=[NAMESPACE])["input"][1] == called


def test_a_namespace_without_functions_is_no_trouble() -> None:
    odd = [{"type": "namespace"}, {"type": "namespace", "name": "x", "tools": [5, {"type": "custom"}]}]
    assert sent(kind="llamacpp", tools=[FUNCTION, *odd])["tools"] == [FUNCTION]


def test_a_tool_of_free_text_loses_its_grammar_to_vllm_and_passes_no_other_kind() -> None:
    assert sent(tools=[GRAMMAR])["tools"] == [
        {**CUSTOM, "description": "Edit.\nIts input follows this grammar:\nstart: x", "format": {"type": "text"}}
    ]
    assert sent(kind="llamacpp", tools=[FUNCTION, GRAMMAR])["tools"] == [FUNCTION]
    called = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "Done"}
    assert sent([USER, called, result])["input"] == [USER, called, result]
    assert sent([USER, called, result], "llamacpp")["input"][1:] == [
        {"type": "function_call", "call_id": "c", "name": "apply_patch", "arguments": '{"input":"*** Begin"}'},
        {"type": "function_call_output", "call_id": "c", "output": "Done"},
    ]


def test_reasoning_is_replayed_without_what_nobody_here_can_decrypt() -> None:
    content = [{"type": "reasoning_text", "text": "Hm."}]
    summary = [{"type": "summary_text", "text": "Hm."}]
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    replayed = sent([USER, item, {**item, "content": content}, {**item, "summary": summary}, USER])["input"]
    assert replayed == [
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": content},
        {"type": "reasoning", "id": "rs_1", "summary": summary},
        USER,
    ]
    (_, told) = sent([USER, {**item, "summary": summary}], "llamacpp")["input"]
    assert told["content"] == content


def test_instructions_and_the_first_system_messages_become_one() -> None:
    first = [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        {"role": "system", "content": "c"},
    ]
    later = {"role": "developer", "content": "d"}
    body = sent([*first, USER, later], instructions="Be kind.")
    assert body["instructions"] == "Be kind.\n\na\n\nb\n\nc"
    assert body["input"] == [USER, {"role": "system", "content": "d"}]
    assert sent([*first, USER])["instructions"] == "a\n\nb\n\nc"
    assert "instructions" not in sent([USER, later])
    assert sent(first)["input"] == [{"role": "system", "content": "c"}]  # an answer needs a message


def test_an_instruction_that_is_more_than_text_stays_where_it_is() -> None:
    first = {"role": "system", "content": [{"type": "input_image", "image_url": DATA}]}
    assert sent([first, USER])["input"] == [first, USER]


def test_llamacpp_heeds_a_format_only_under_the_name_that_chat_has_for_it() -> None:
    schema = {"type": "object", "properties": {}}
    text = {"format": {"type": "json_schema", "name": "a", "strict": True, "schema": schema}}
    body = sent(kind="llamacpp", text=text)
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}}
    assert sent(kind="llamacpp", text={"format": {"type": "json_object"}})["response_format"] == {"type": "json_object"}
    for other in ({"format": {"type": "text"}}, {"verbosity": "low"}, None):
        assert "response_format" not in sent(kind="llamacpp", text=other)
    assert "response_format" not in sent(text=text)
