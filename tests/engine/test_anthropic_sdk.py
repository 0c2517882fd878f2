"""The Anthropic SDK on a real vLLM, through the whole gateway."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from anthropic import Anthropic, BadRequestError
from anthropic.types import Usage

from tests.engine.counted import Tokens, only_event_of
from tests.engine.vllm import CHAT, CONTEXT_TOKENS, Vllm
from tests.recordings.words import BILLING_LINE, CITY, WEATHER, message_tool
from tests.support.gateway import Customer, Town

pytestmark = pytest.mark.engine

HELLO: Any = [{"role": "user", "content": "Say hello."}]
TOOLS: Any = [{**message_tool(), "strict": True}]


@pytest.fixture
def customer(faregate: Town) -> Customer:
    return faregate.key()


@pytest.fixture
def client(faregate: Town, customer: Customer) -> Iterator[Anthropic]:
    with Anthropic(base_url=faregate.gateway().url, api_key=customer.token, max_retries=0, timeout=120) as built:
        yield built


def all_input(used: Usage) -> int:
    """Anthropic counts what was read from a cache, and what was written to one, apart."""
    return used.input_tokens + (used.cache_read_input_tokens or 0) + (used.cache_creation_input_tokens or 0)


def test_a_message_is_told_counted_and_settled_alike(faregate: Town, vllm: Vllm, client: Anthropic, customer: Customer) -> None:
    before = Tokens.of_engine(vllm.url)
    with client.messages.stream(model=CHAT, messages=HELLO, max_tokens=12, extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert [block.text for block in final.content if block.type == "text"] == [text]
    assert text
    assert final.stop_reason == "max_tokens"
    told = Tokens(all_input(final.usage), final.usage.output_tokens)
    assert Tokens.of_engine(vllm.url).since(before) == told == Tokens.of_event(only_event_of(faregate, customer))


def test_a_tool_is_used_and_its_result_answered(client: Anthropic) -> None:
    asked: Any = {"role": "user", "content": WEATHER}
    for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}):
        chosen: Any = choice
        with client.messages.stream(
            model=CHAT, messages=[asked], tools=TOOLS, tool_choice=chosen, max_tokens=96, extra_body={"temperature": 0}
        ) as stream:
            first = stream.get_final_message()
        assert first.stop_reason == "tool_use"
        [use] = [block for block in first.content if block.type == "tool_use"]
        jsonschema.validate(use.input, CITY)
    result: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "18 degrees"}]}
    used: Any = {"role": "assistant", "content": [use.to_dict()]}
    told = client.messages.create(model=CHAT, messages=[asked, used, result], tools=TOOLS, max_tokens=12)
    assert told.content[0].type == "text"
    assert told.content[0].text


def test_a_stop_sequence_is_named(client: Anthropic) -> None:
    answer = client.messages.create(
        model=CHAT, messages=HELLO, max_tokens=40, stop_sequences=["e"], extra_body={"temperature": 0}
    )
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "e")


def test_tokens_are_counted_as_a_message_of_them_is(client: Anthropic) -> None:
    counted = client.messages.count_tokens(model=CHAT, messages=HELLO, system="Be brief.", tools=TOOLS)
    used = client.messages.create(model=CHAT, messages=HELLO, system="Be brief.", tools=TOOLS, max_tokens=1).usage
    assert counted.input_tokens == all_input(used)


def test_a_line_that_changes_with_every_call_spoils_no_cache(client: Anthropic) -> None:
    """A coding agent puts it first in its system prompt; the engine's cache goes by what comes first."""
    cached = []
    for mark in ("cch=8f3a1;", "cch=00000;"):
        system: Any = [
            {"type": "text", "text": BILLING_LINE.replace("cch=8f3a1;", mark)},
            {"type": "text", "text": "You are a coding agent. " * 100},
        ]
        used = client.messages.create(model=CHAT, messages=HELLO, system=system, max_tokens=1).usage
        cached.append(used.cache_read_input_tokens)
    assert cached[0] == 0
    assert cached[1] is not None
    assert cached[1] >= 256


def test_more_than_the_context_is_refused_in_the_engines_words(client: Anthropic) -> None:
    too_long: Any = [{"role": "user", "content": "one two three four five " * (CONTEXT_TOKENS // 4)}]
    with pytest.raises(BadRequestError) as refused:
        client.messages.create(model=CHAT, messages=too_long, max_tokens=10)
    body: Any = refused.value.body
    assert body["error"]["type"] == "invalid_request_error"
    assert "maximum context length" in body["error"]["message"]
