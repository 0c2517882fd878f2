"""openai-node and the AI SDK on `/v1/responses`, through the whole gateway."""

from typing import Any

import pytest

from tests.conformance.test_responses import CALL, FUNCTION, script
from tests.conformance.test_responses_failing import BROKEN, WHY
from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event
from tests.support.gateway import Town
from tests.support.node import ask

pytestmark = pytest.mark.clients
TEXT = "tok tok tok "


def openai_node(town: Town, how: str, given: str, **fields: Any) -> Any:
    asked = {"model": MODEL, "input": given, **fields}
    return ask("openai_responses.mjs", base=f"{town.gateway().url}/v1", key=town.key().token, how=how, ask=asked)


def ai_sdk(town: Town, how: str, prompt: str, **settings: Any) -> Any:
    whole = {"base": f"{town.gateway().url}/v1", "key": town.key().token, "model": MODEL, "how": how, "prompt": prompt}
    return ask("ai_sdk_responses.mjs", **whole, **settings)


@pytest.mark.parametrize("how", ["whole", "raw", "helper"])
def test_openai_node_gets_its_answer(shared: Town, how: str) -> None:
    assert openai_node(shared, how, "hi")["text"] == TEXT
    assert only_event(shared).verdict == "posted"


@pytest.mark.parametrize("how", ["whole", "helper"])
def test_openai_node_gets_a_call(shared: Town, how: str) -> None:
    found = openai_node(shared, how, script(**CALL), tools=[FUNCTION])
    assert [(item["name"], item["arguments"]) for item in found["output"]] == [("get_weather", '{"city":"Paris"}')]


@pytest.mark.parametrize("how", ["raw", "helper"])
@pytest.mark.parametrize("steps", BROKEN)
def test_openai_node_raises_when_a_stream_breaks(shared: Town, how: str, steps: dict[str, Any]) -> None:
    found = openai_node(shared, how, script(**steps))
    assert found["events"][0] == "response.created"
    assert found["error"]["code"] == "engine_failed"
    assert only_event(shared).verdict == "voided"


@pytest.mark.parametrize("how", ["whole", "raw", "helper"])
def test_openai_node_is_told_what_is_not_stored(shared: Town, how: str) -> None:
    error = openai_node(shared, how, "hi", previous_response_id="resp_1")["error"]
    assert (error["name"], error["status"], error["code"]) == ("BadRequestError", 400, "not_stored")


@pytest.mark.parametrize("how", ["whole", "stream"])
def test_the_ai_sdk_gets_its_answer_and_its_usage(shared: Town, how: str) -> None:
    found = ai_sdk(shared, how, "hi")
    assert (found["text"], found["finishReason"]) == (TEXT, "stop")
    assert found["usage"]["outputTokens"] == 3
    assert only_event(shared).verdict == "posted"


@pytest.mark.parametrize("how", ["whole", "stream"])
def test_the_ai_sdk_gets_a_call(shared: Town, how: str) -> None:
    found = ai_sdk(shared, how, script(**CALL), schema=FUNCTION["parameters"])
    assert found["calls"] == [{"toolName": "get_weather", "input": {"city": "Paris"}}]
    assert found["finishReason"] == "tool-calls"


@pytest.mark.parametrize("steps", BROKEN)
def test_the_ai_sdk_has_an_error_when_a_stream_breaks(shared: Town, steps: dict[str, Any]) -> None:
    found = ai_sdk(shared, "stream", script(**steps))
    assert found["finishReason"] == "error"
    assert WHY in found["errors"][0]


def test_the_ai_sdk_tells_an_answer_that_ran_out_of_time_from_one_that_ended(shared: Town) -> None:
    gateway = shared.gateway(total_seconds=0.6)
    found = ask(
        "ai_sdk_responses.mjs", base=f"{gateway.url}/v1", key=shared.key().token, model=MODEL, how="stream",
        prompt=script(chunks=100, pace_ms=50),
    )  # fmt: skip
    assert found["finishReason"] == "length"
    assert not found["errors"]
    assert only_event(shared).verdict == "posted"
