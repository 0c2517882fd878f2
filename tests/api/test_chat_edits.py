"""What a chat's engine gets differs from what its client sent by the edits of the table alone."""

import copy
from typing import Any

import orjson
import pytest

from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api import bounds
from gateway.api.call import read_call
from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.chat_messages import developer_as_system, plain
from gateway.api.edits import ENGINE_ONLY, engine_body
from gateway.api.order import Order
from gateway.api.salts import Salts
from gateway.api.service_tiers import service_class
from gateway.errors import Refusal
from gateway.limits.policy import Numbers
from models.catalogue import Catalogue

HELLO = [{"role": "user", "content": "hello"}]
TEXT = [{"type": "text", "text": "18"}, {"type": "text", "text": "degrees"}]


def sent(model: str = "qwen3-8b", **fields: Any) -> dict[str, Any]:
    """The body that a vLLM gets; the client's own stays as it was."""
    call = read_call(CHAT, {"model": "m", "messages": HELLO, **fields}, 100)
    before = copy.deepcopy(call.body)
    found = Catalogue.load().resolve(model)
    order = Order(
        model=found,
        ways=(),
        fare=1,
        output_max=None,
        output_default=None,
        account="a",
        key="k",
        service_class="pro",
        numbers=Numbers(),
    )
    replica = Replica.at("http://127.0.0.1:1", name="r", model=found.id, engine=ENGINE_KINDS["vllm"], slots=1, engine_model="e")
    body: dict[str, Any] = orjson.loads(engine_body(call, order, replica, Salts("pepper", shared=True)))
    assert call.body == before
    return body


def test_every_parameter_of_openai_and_what_nobody_knows_passes() -> None:
    fields: dict[str, Any] = {
        "audio": {"voice": "a"},
        "frequency_penalty": 0.1,
        "logit_bias": {"7": -100},
        "logprobs": True,
        "max_completion_tokens": 7,
        "metadata": {"a": "b"},
        "modalities": ["text"],
        "moderation": {},
        "n": 1,
        "parallel_tool_calls": False,
        "prediction": {},
        "presence_penalty": 0.1,
        "prompt_cache_key": "k",
        "prompt_cache_options": {},
        "prompt_cache_retention": "24h",
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "safety_identifier": "s",
        "seed": 7,
        "stop": ["a"],
        "store": True,
        "stream": False,
        "temperature": 0,
        "tool_choice": "auto",
        "tools": [{"type": "function"}],
        "top_logprobs": 20,
        "top_p": 0.5,
        "user": "u",
        "verbosity": "low",
        "web_search_options": {},
        "top_k": 5,
        "never_heard_of": 1,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert sent(**fields) == {"model": "e", "messages": HELLO, **fields}


def test_what_only_an_operator_may_set_is_removed() -> None:
    assert sent(**dict.fromkeys(ENGINE_ONLY, "default")) == {"model": "e", "messages": HELLO}


def test_a_developers_word_is_a_systems_where_the_template_knows_no_developer() -> None:
    """halogen-flash-server#32, ogx#6069: 400 "Unexpected message role"."""
    messages = [{"role": "developer", "content": "brief", "name": "x"}, *HELLO]
    assert sent("qwen3-8b", messages=messages)["messages"] == [{"role": "system", "content": "brief", "name": "x"}, *HELLO]
    assert sent("gpt-oss-20b", messages=messages)["messages"] == messages


def test_texts_of_tools_and_assistants_become_one() -> None:
    """vllm#25001, ninfer#56: a tool's result as a list of parts; llama.cpp leaves it out without a word."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": TEXT},
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, TEXT[0]], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": TEXT},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": []},
    ]
    assert [message["content"] for message in sent(messages=messages)["messages"]] == [
        TEXT,
        TEXT,
        "no\n18",
        "18\ndegrees",
        None,
        "",
    ]
    assert sent(messages=messages)["messages"][2]["tool_calls"] == [call]


@pytest.mark.parametrize("part", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}, {"type": "text"}, 7])
def test_a_tools_result_that_is_more_than_text_stays_as_it_is(part: Any) -> None:
    messages = [{"role": "tool", "tool_call_id": "c", "content": [TEXT[0], part]}]
    assert plain(messages) == messages


def test_messages_without_anything_to_change_are_not_copied() -> None:
    assert plain(HELLO) is HELLO
    assert developer_as_system(HELLO) is HELLO


@pytest.mark.parametrize(
    ("tier", "plan", "class_"),
    [
        (None, "pro", "pro"),
        ("auto", "free", "free"),
        ("default", "pro", "pro"),
        ("priority", "free", "free"),
        ("priority", "premium", "premium"),
        ("flex", "enterprise", "batch"),
        ("flex", "free", "batch"),
        ("standard_only", "pro", "pro"),
    ],
)
def test_a_service_tier_is_never_above_the_plan(tier: Any, plan: Any, class_: str) -> None:
    assert service_class(tier, plan) == class_


@pytest.mark.parametrize("tier", ["enterprise", "", 1, ["flex"], {}])
def test_an_unknown_service_tier_is_refused(tier: Any) -> None:
    with pytest.raises(Refusal, match="service_tier must be"):
        service_class(tier, "pro")


@pytest.mark.parametrize(
    "fields",
    [
        {"top_logprobs": 21},
        {"top_logprobs": -1},
        {"top_logprobs": True},
        {"top_logprobs": "5"},
        {"logprobs": 21},
        {"logprobs": "a"},
        {"prompt_logprobs": -1},
        {"prompt_logprobs": 1000},
        {"logit_bias": {str(token): 1 for token in range(1025)}},
        {"logit_bias": []},
        {"stop": ["a"] * 65},
        {"stop": ["a" * 5000]},
        {"stop": "a" * 5000},
        {"stop": [1]},
        {"stop": {}},
        {"stop_token_ids": [1] * 1025},
        {"bad_words": ["a"] * 1025},
        {"allowed_token_ids": 1},
        {"logprob_token_ids": [1] * 1025},
        {"functions": [{"name": "f"}]},
        {"function_call": {"name": "f"}},
        {"function_call": "auto"},
    ],
)
def test_parameters_out_of_proportion_are_refused_by_name(fields: dict[str, Any]) -> None:
    for endpoint, body in ((CHAT, {"messages": HELLO}), (COMPLETIONS, {"prompt": "x"})):
        with pytest.raises(Refusal) as caught:
            read_call(endpoint, {"model": "m", **body, **fields}, 100)
        assert (caught.value.status, caught.value.param) == (400, next(iter(fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {"top_logprobs": 20},
        {"logprobs": True},
        {"logprobs": 5},
        {"prompt_logprobs": 0},
        {"stop": "a"},
        {"stop": None},
        {"stop": []},
        {"stop": ["a"] * 64},
        {"logit_bias": {}},
        {"functions": []},
        {"functions": None},
        {"function_call": "none"},
    ],
)
def test_parameters_within_bounds_pass(fields: dict[str, Any]) -> None:
    bounds.check(fields)


def test_a_data_url_of_any_length_passes_as_it_is() -> None:
    """openai-python#3551 (over 65,520 characters), llm-gateway#2126 (1 MB), one-api#1016 (500 KB)."""
    url = "data:image/png;base64," + "A" * 3_000_000
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url, "detail": "high"}}]}]
    assert sent(messages=messages)["messages"] == messages


def test_text_beside_a_call_passes_in_one_message() -> None:
    """agent-framework#694: 400 after a turn with both; history of tools is null, empty or missing content too."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for content in ({"content": "so"}, {"content": None}, {"content": ""}, {}):
        messages = [
            *HELLO,
            {"role": "assistant", **content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ]
        assert sent(messages=messages)["messages"] == messages
