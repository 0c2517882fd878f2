"""What is asked of `/v1/messages`, and what an engine of each kind gets of it."""

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from backends.dedicated import Way
from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api.call import read_call, text_bytes
from gateway.api.edits import engine_body
from gateway.api.endpoint import Endpoint
from gateway.api.messages import COUNT_TOKENS, MESSAGES
from gateway.api.order import Order
from gateway.api.salts import Salts
from gateway.errors import Refusal
from gateway.limits.policy import Numbers
from models.catalogue import Catalogue
from tests.recordings.recording import recorded
from tests.recordings.words import BILLING_LINE

MODEL = Catalogue.load().resolve("qwen3-8b")
DATA = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
IMAGE = {"type": "image", "source": DATA}
ADDRESS = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
TOOLS = [{"name": "f", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {"type": "object"}}]
CODING_AGENT = recorded("vllm", "reasoning-messages-coding-agent-stream").call.body


def asked(content: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": content}], **fields}


def sent(
    body: dict[str, Any], kind: str = "vllm", endpoint: Endpoint = MESSAGES, output_max: int | None = None
) -> dict[str, Any]:
    replica = Replica.at("http://127.0.0.1:1", name="r", model="qwen3-8b", engine=ENGINE_KINDS[kind], slots=1, engine_model="e")
    ways = [Way("m", [replica])]
    order = Order(MODEL, ways, 1, output_max, None, account="a", key="k", service_class="free", numbers=Numbers())
    before = copy.deepcopy(body)
    result: dict[str, Any] = orjson.loads(engine_body(read_call(endpoint, body, 0), order, replica, Salts("pepper", shared=True)))
    assert body == before, "another replica gets the client's own body too"
    return result


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"model": "m", "max_tokens": 1}, "messages"),
        (asked(messages=[]), "messages"),
        (asked(messages=["hi"]), "messages.0"),
        (asked(messages=[{"role": "robot", "content": "hi"}]), "messages.0.role"),
        (asked(None), "messages.0.content"),
        (asked(["hi"]), "messages.0.content.0"),
        (asked([{"text": "hi"}]), "messages.0.content.0"),
        (asked([{"type": "text", "text": 1}]), "messages.0.content.0.text"),
        (asked([{"type": "tool_result", "tool_use_id": "t", "content": 1}]), "messages.0.content.0.content"),
        (asked([{"type": "image"}]), "messages.0.content.0.source"),
        (asked([{"type": "image", "source": {"type": "base64"}}]), "messages.0.content.0.source"),
        (asked([{"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}]), "messages.0.content.0.source"),
        (asked([{"type": "image", "source": {"type": "other", "url": "http://10.0.0.1/"}}]), "messages.0.content.0.source"),
        (
            asked([{"type": "image", "source": {"type": "other", "url": "data:image/png;base64,AAAA"}}]),
            "messages.0.content.0.source",
        ),
        (asked([{"type": "image", "source": {"type": "file", "file_id": "f"}}]), "messages.0.content.0.source"),
        (
            asked([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "other"}}]}]),
            "messages.0.content.0.content.0.source",
        ),
        (asked([{"type": "document", "source": DATA}]), "messages.0.content.0.source"),
        (asked(system=5), "system"),
        (asked(system=[IMAGE]), "system.0.type"),
        (asked(max_tokens=None), "max_tokens"),
        (asked(max_tokens=0), "max_tokens"),
        (asked(max_tokens="many"), "max_tokens"),
        (asked(stream="yes"), "stream"),
        (asked(thinking="yes"), "thinking"),
        (asked(tool_choice="auto"), "tool_choice"),
        (asked(tools={}), "tools"),
        (asked(tools=["f"]), "tools.0"),
        (asked(tools=[{"name": "f"}]), "tools.0.input_schema"),
        (asked(tools=[*TOOLS, {"type": "web_search_20250305", "name": "web_search"}]), "tools.2"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(body: dict[str, Any], place: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_call(MESSAGES, body, 0)
    assert (caught.value.status, caught.value.param) == (400, place)
    assert caught.value.message.startswith(place)


def test_a_missing_limit_is_said_in_anthropics_words() -> None:
    body = asked()
    del body["max_tokens"]
    with pytest.raises(Refusal, match=r"^max_tokens: Field required$"):
        read_call(MESSAGES, body, 0)


def test_images_are_counted_wherever_they_are_and_addresses_noted() -> None:
    inside = {"type": "tool_result", "tool_use_id": "t", "content": [IMAGE, ADDRESS]}
    document = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, IMAGE]}}
    call = read_call(MESSAGES, asked([IMAGE, ADDRESS, inside, document, {"type": "text", "text": "hi"}]), 0)
    assert call.images == 5
    assert [image.place for image in call.addressed] == ["messages.0.content.1.source", "messages.0.content.2.content.1.source"]


def test_an_image_by_address_is_written_in_as_data() -> None:
    body = asked([copy.deepcopy(ADDRESS)])
    [image] = read_call(MESSAGES, body, 0).addressed
    image.put("image/png", "AAAA")
    assert body["messages"][0]["content"] == [IMAGE]


def test_an_images_data_is_no_text() -> None:
    large = {"type": "image", "source": {**DATA, "data": "A" * 10_000}}
    assert text_bytes(read_call(MESSAGES, asked([large]), 0)) < 200


def test_one_message_is_one_generation_whatever_n_says_and_a_count_is_none() -> None:
    assert read_call(MESSAGES, asked(n=5, best_of=9), 0).generations == 1
    assert read_call(COUNT_TOKENS, asked(), 0).generations == 0


def test_unknown_fields_blocks_and_cache_marks_pass() -> None:
    content = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_result", "tool_use_id": "t", "content": "18", "is_error": False},
        {"type": "future", "x": 1},
    ]
    thought = [{"type": "thinking", "thinking": "b", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}]
    body = asked(content, tools=TOOLS, metadata={"user_id": "u"}, top_k=3, stop_sequences=["x"], context_management={"edits": []})
    body["messages"] += [{"role": "assistant", "content": thought}, {"role": "user", "content": "c"}]
    for kind in ENGINE_KINDS:
        assert sent(body, kind) == {**body, "model": "e"}


def test_a_coding_agents_request_reaches_vllm_less_what_the_table_names() -> None:
    system = CODING_AGENT["system"][1:]
    assert CODING_AGENT["system"][0]["text"] == BILLING_LINE
    assert sent(CODING_AGENT) == {**CODING_AGENT, "model": "e", "system": system, "thinking": {"type": "adaptive"}}


@pytest.mark.parametrize("kind", ["enabled", "between_tools"])
def test_thinking_that_vllm_may_refuse_is_left_to_the_model(kind: str) -> None:
    body = asked(thinking={"type": kind, "budget_tokens": 1024})
    assert sent(body)["thinking"] == {"type": "adaptive"}
    assert sent(body, "llamacpp")["thinking"] == body["thinking"]
    for known in ({"type": "adaptive", "display": "omitted"}, {"type": "disabled"}):
        assert sent(asked(thinking=known))["thinking"] == known


def test_other_engines_get_its_system_messages_in_the_system_prompt() -> None:
    got = sent(CODING_AGENT, "sglang")
    assert got["system"] == "You are a coding agent.\n\nBe brief."
    assert got["messages"] == CODING_AGENT["messages"][:1]


@pytest.mark.parametrize(
    ("system", "left"),
    [
        (f"{BILLING_LINE}\nYou are a coding agent.", "You are a coding agent."),
        (f"{BILLING_LINE}You are = a coding agent; say so.", "You are = a coding agent; say so."),
        ("x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=a5145\nYou", "You"),
        ([{"type": "text", "text": f"{BILLING_LINE}\nYou"}], [{"type": "text", "text": "You"}]),
        ([{"type": "text", "text": BILLING_LINE}, {"type": "text", "text": "You"}], [{"type": "text", "text": "You"}]),
        (BILLING_LINE, None),
        ([{"type": "text", "text": BILLING_LINE}], None),
        (f"You are.\n{BILLING_LINE}", f"You are.\n{BILLING_LINE}"),
        ("x-anthropic-other: a=b;", "x-anthropic-other: a=b;"),
        ([], []),
    ],
)
def test_the_changing_line_before_a_system_prompt_is_taken_out_and_nothing_else(system: object, left: object) -> None:
    for endpoint in (MESSAGES, COUNT_TOKENS):
        assert sent(asked(system=system), endpoint=endpoint).get("system") == left


def test_documents_of_text_are_written_out_as_text() -> None:
    plain = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "body"}}
    inside = [{"type": "text", "text": "a"}, IMAGE, plain]
    nested = {"type": "document", "context": "C", "source": {"type": "content", "content": inside}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [plain]}
    as_text = {"type": "text", "text": "T\n\nbody"}
    got = sent(asked([plain, nested, result, {"type": "text", "text": "z"}]))["messages"][0]["content"]
    assert got == [
        as_text,
        *({"type": "text", "text": "C"}, {"type": "text", "text": "a"}, IMAGE, as_text),
        {**result, "content": [as_text]},
        {"type": "text", "text": "z"},
    ]


@pytest.mark.parametrize(
    ("choice", "change"),
    [
        ({"type": "none"}, lambda body: [body.pop(field) for field in ("tools", "tool_choice")]),
        ({"type": "tool", "name": "g"}, lambda body: body.update(tools=TOOLS[1:])),
        ({"type": "any"}, lambda body: None),
        ({"type": "auto", "disable_parallel_tool_use": True}, lambda body: None),
    ],
)
def test_llamacpp_which_does_not_heed_a_choice_is_shown_the_tools_that_it_leaves(
    choice: dict[str, Any], change: Callable[[dict[str, Any]], object]
) -> None:
    body = asked(tools=TOOLS, tool_choice=choice)
    assert sent(body) == {**body, "model": "e"}
    expected = {**body, "model": "e"}
    change(expected)
    assert sent(body, "llamacpp") == expected


def test_the_output_is_capped_and_a_count_has_none() -> None:
    assert sent(asked(max_tokens=32_000), output_max=2048)["max_tokens"] == 2048
    assert sent(asked(max_tokens=10), output_max=2048)["max_tokens"] == 10
    body = asked()
    del body["max_tokens"]
    assert "max_tokens" not in sent(body, endpoint=COUNT_TOKENS, output_max=2048)
