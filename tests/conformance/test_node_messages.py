"""Anthropic's SDK for Node.js and the AI SDK on `/v1/messages`, through the whole gateway."""

from typing import Any

import pytest

from tests.conformance.test_messages import CALL, TOOL, message
from tests.conformance.test_messages_failing import BROKEN
from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event
from tests.support.gateway import Town
from tests.support.node import ask

pytestmark = pytest.mark.clients
TEXT = "tok tok tok "


def anthropic_node(town: Town, how: str, **asked: Any) -> Any:
    return ask("anthropic_messages.mjs", base=town.gateway().url, key=town.key().token, how=how, ask=asked)


def ai_sdk(town: Town, asked: dict[str, Any], **settings: Any) -> Any:
    prompt = asked["messages"][0]["content"]
    whole = {"base": f"{town.gateway().url}/v1", "key": town.key().token, "model": MODEL, "prompt": prompt}
    return ask("ai_sdk_messages.mjs", **whole, **settings)


@pytest.mark.parametrize("how", ["whole", "helper"])
def test_the_sdk_gets_its_answer(shared: Town, how: str) -> None:
    found = anthropic_node(shared, how, **message(reasoning=True, chunks=4))["message"]
    assert [block["type"] for block in found["content"]] == ["thinking", "text"]
    assert (found["stop_reason"], found["usage"]["output_tokens"]) == ("end_turn", 4)
    assert only_event(shared).verdict == "posted"


def test_the_sdk_reads_a_raw_stream(shared: Town) -> None:
    found = anthropic_node(shared, "raw", **message())
    assert found["text"] == TEXT
    assert (found["events"][0], found["events"][-1]) == ("message_start", "message_stop")


@pytest.mark.parametrize("how", ["whole", "helper"])
def test_the_sdk_gets_a_call(shared: Town, how: str) -> None:
    found = anthropic_node(shared, how, **message(**CALL), tools=[TOOL])["message"]
    assert [(block["name"], block["input"]) for block in found["content"]] == [("get_weather", {"city": "Paris"})]
    assert found["stop_reason"] == "tool_use"


@pytest.mark.parametrize("how", ["raw", "helper"])
@pytest.mark.parametrize("steps", BROKEN)
def test_the_sdk_raises_when_a_stream_breaks(shared: Town, how: str, steps: dict[str, Any]) -> None:
    found = anthropic_node(shared, how, **message(**steps))
    assert found["events"][0] == "message_start"
    assert "engine_failed" in found["error"]["message"]
    assert only_event(shared).verdict == "voided"


@pytest.mark.parametrize(
    ("status", "name", "told"), [(503, "OverloadedError", 529), (500, "InternalServerError", 502), (400, "BadRequestError", 400)]
)
def test_the_sdk_has_names_for_errors(shared: Town, status: int, name: str, told: int) -> None:
    error = anthropic_node(shared, "helper", **message(status=status))["error"]
    assert (error["status"], error["name"]) == (told, name)


def test_the_sdk_counts_tokens_and_lists_models(shared: Town) -> None:
    asked = message()
    del asked["max_tokens"]
    assert anthropic_node(shared, "count", **asked)["input_tokens"] == 1
    assert anthropic_node(shared, "models", limit=1)["names"] == [MODEL]


def test_the_ai_sdk_gets_its_answer_and_its_usage(shared: Town) -> None:
    found = ai_sdk(shared, message(reasoning=True, chunks=6))
    assert (found["text"], found["reasoning"], found["finishReason"]) == (TEXT, TEXT, "stop")
    assert found["usage"]["outputTokens"] == 6
    assert only_event(shared).verdict == "posted"


def test_the_ai_sdk_gets_a_call(shared: Town) -> None:
    found = ai_sdk(shared, message(**CALL), schema=TOOL["input_schema"])
    assert found["calls"] == [{"toolName": "get_weather", "input": {"city": "Paris"}}]
    assert found["finishReason"] == "tool-calls"


@pytest.mark.parametrize("steps", BROKEN)
def test_the_ai_sdk_has_an_error_when_a_stream_breaks(shared: Town, steps: dict[str, Any]) -> None:
    assert ai_sdk(shared, message(**steps))["errors"]
    assert only_event(shared).verdict == "voided"
