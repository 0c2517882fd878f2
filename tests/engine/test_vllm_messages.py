"""A gateway in front of vLLM: the Anthropic SDK's streams, calls and counts, and what a coding agent sends."""

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic

from tests.conformance.test_messages import calls, client_of, post
from tests.engine.vllm import CHAT
from tests.recordings.recording import recorded
from tests.support.gateway import Town, wait_for
from tests.support.message_blocks import faults
from tests.support.stream import settled

pytestmark = pytest.mark.engine
HELLO: Any = {"model": CHAT, "messages": [{"role": "user", "content": "Say hello."}], "extra_body": {"temperature": 0}}


@pytest.fixture
def client(faregate: Town) -> Iterator[Anthropic]:
    with client_of(faregate, faregate.gateway()) as built:
        yield built


def test_the_sdks_own_stream_builds_a_message_whose_tokens_are_metered(faregate: Town, client: Anthropic) -> None:
    with client.messages.stream(**HELLO, max_tokens=12) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    counted = client.messages.count_tokens(**HELLO).input_tokens
    customer = faregate.customers[-1]
    wait_for(lambda: len(settled(faregate.redis_url, customer)) == 2)
    message = next(event.event for event in settled(faregate.redis_url, customer) if event.event["endpoint"] == "messages")
    assert text
    assert message["completion_tokens"] == final.usage.output_tokens > 0
    assert message["prompt_tokens"] == counted == final.usage.input_tokens + (final.usage.cache_read_input_tokens or 0)


@pytest.mark.parametrize("case", ["messages-tools-any", "messages-tools-named"])
def test_a_call_that_was_asked_for_comes(client: Anthropic, case: str) -> None:
    asked = {**recorded("vllm", case).call.body, "model": CHAT}
    asked["extra_body"] = {"temperature": asked.pop("temperature")}
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message().to_dict()
    for answer in (streamed, client.messages.create(**asked).to_dict()):
        assert [(name, set(given)) for name, given in calls(answer["content"])] == [("get_weather", {"city"})]
        assert answer["stop_reason"] == "tool_use"


def test_thinking_with_a_budget_is_answered(client: Anthropic) -> None:
    """Without a parser of thoughts vLLM refuses it, in a stream after the 200."""
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    assert client.messages.create(**HELLO, max_tokens=1030, thinking=thinking, stop_sequences=["."]).content


def test_what_a_coding_agent_sends_is_answered(faregate: Town) -> None:
    body = recorded("vllm", "reasoning-messages-coding-agent-stream").call.body
    answer = post(faregate.gateway(), faregate.key(), {**body, "model": CHAT, "max_tokens": 8})
    assert answer.status_code == 200
    assert faults(answer.content) == []
