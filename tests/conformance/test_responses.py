"""The OpenAI SDK on `/v1/responses`, through the whole gateway."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import BadRequestError, NotFoundError, OpenAI
from openai.types.responses import Response
from pydantic import BaseModel

from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event, post
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town

FUNCTION: Any = {
    "type": "function", "name": "get_weather", "strict": True,
    "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False,
    },
}  # fmt: skip
CALL = {"tool": True, "tool_name": "get_weather", "tool_arguments": '{"city":"Paris"}'}


def script(**steps: Any) -> str:
    return "@engine " + json.dumps(steps)


@pytest.fixture
def client(shared: Town) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{shared.gateway().url}/v1", api_key=shared.key().token, max_retries=0) as built:
        yield built


def test_a_response_is_one_answer_one_receipt_one_event(shared: Town, client: OpenAI) -> None:
    raw = client.responses.with_raw_response.create(model=MODEL, input="hi", instructions="Be brief.", store=True)
    answer = raw.parse()
    assert answer.output_text == "tok tok tok "
    assert answer.status == "completed"
    assert raw.headers["x-faregate-fare"] == "1"
    event = only_event(shared)
    assert raw.headers["x-request-id"] == event.id
    assert (event.verdict, event.reason, event.event["endpoint"]) == ("posted", "answered", "responses")
    assert answer.usage is not None
    assert event.event["completion_tokens"] == answer.usage.output_tokens == 3


def test_a_stream_is_relayed_as_the_engine_sent_it(shared: Town, standing_engine: StandInEngine) -> None:
    body = {"model": MODEL, "input": script(chunks=20, reasoning=True), "stream": True}
    ours = post(shared.gateway(), shared.key(), body, "/v1/responses")
    assert ours.headers["content-type"] == "text/event-stream; charset=utf-8"
    theirs = httpx2.post(f"{standing_engine.url}/v1/responses", json=body)
    left, right = (re.sub(r"chatcmpl-\d+", "", text) for text in (ours.text, theirs.text))
    assert left == right
    assert only_event(shared).event["completion_tokens"] == 20


@pytest.mark.parametrize("steps", [{}, {"split": True}, {"sse_comment": True}, {"reasoning": True, "chunks": 6}])
def test_the_sdks_own_stream_builds_the_answer(shared: Town, client: OpenAI, steps: dict[str, Any]) -> None:
    with client.responses.stream(model=MODEL, input=script(**steps)) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == "tok tok tok "
    assert [item.type for item in final.output] == (["reasoning", "message"] if "reasoning" in steps else ["message"])
    assert only_event(shared).verdict == "posted"


def test_a_tool_is_called_and_its_result_answered(client: OpenAI, standing_engine: StandInEngine) -> None:
    question: Any = {"role": "user", "content": script(**CALL)}
    with client.responses.stream(model=MODEL, input=[question], tools=[FUNCTION]) as stream:
        first = stream.get_final_response()
    (call,) = first.output
    assert call.type == "function_call"
    assert (call.name, call.arguments) == ("get_weather", '{"city":"Paris"}')
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
    replayed: Any = call.to_dict()
    second = client.responses.create(model=MODEL, input=[question, replayed, result], tools=[FUNCTION])
    assert second.output_text == "tok tok tok "
    given = standing_engine.journal()["requests"][-1]["body"]
    assert [item.get("type") for item in given["input"]] == [None, "function_call", "function_call_output"]
    assert given["tools"] == [FUNCTION]
    assert given["store"] is False


class Weather(BaseModel):
    degrees: int


def test_an_answer_is_parsed_by_the_schema_that_the_engine_got(client: OpenAI, standing_engine: StandInEngine) -> None:
    answer = client.responses.parse(model=MODEL, input=script(text='{"degrees":18}', chunks=1), text_format=Weather)
    assert answer.output_parsed == Weather(degrees=18)
    given = standing_engine.journal()["requests"][-1]["body"]
    assert given["text"]["format"]["schema"]["properties"] == {"degrees": {"title": "Degrees", "type": "integer"}}
    assert given["text"]["format"]["strict"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_reached_its_limit_is_incomplete(shared: Town, client: OpenAI, stream: bool) -> None:
    asked: Any = {"model": MODEL, "input": script(chunks=9), "max_output_tokens": 4}
    if stream:
        *_, last = client.responses.create(**asked, stream=True)
        assert last.type == "response.incomplete"
        answer: Response = last.response
    else:
        answer = client.responses.create(**asked)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text == "tok tok tok tok "
    assert only_event(shared).verdict == "posted"


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_answer_is_delivered_and_not_billed(shared: Town, client: OpenAI, stream: bool) -> None:
    asked: Any = {"model": MODEL, "input": script(empty=True), "stream": stream}
    answer = client.responses.create(**asked)
    if stream:
        assert [event.type for event in answer] == ["response.created", "response.in_progress", "response.completed"]
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "empty_answer")


def test_what_nothing_stored_can_answer_says_so(shared: Town, client: OpenAI, standing_engine: StandInEngine) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.responses.create(model=MODEL, input="hi", previous_response_id="resp_1")
    assert (refused.value.code, refused.value.param) == ("not_stored", "previous_response_id")
    for ask in (
        lambda: client.responses.retrieve("resp_1"),
        lambda: client.responses.delete("resp_1"),
        lambda: client.responses.cancel("resp_1"),
        lambda: client.responses.input_items.list("resp_1"),
    ):
        with pytest.raises(NotFoundError, match="answers are not stored"):
            ask()
    assert not standing_engine.journal()["requests"]


def test_a_function_of_a_namespace_comes_back_under_its_own_name(client: OpenAI, standing_engine: StandInEngine) -> None:
    tools: Any = [{"type": "namespace", "name": "notes", "description": "Notes", "tools": [FUNCTION]}, {"type": "web_search"}]
    answer = client.responses.create(model=MODEL, input=script(**{**CALL, "tool_name": "notes__get_weather"}), tools=tools)
    (call,) = answer.output
    assert call.type == "function_call"
    assert (call.namespace, call.name) == ("notes", "get_weather")
    assert [tool["type"] for tool in standing_engine.journal()["requests"][-1]["body"]["tools"]] == ["namespace"]


def test_a_body_of_this_api_posted_to_chat_is_answered_as_a_chat(shared: Town, standing_engine: StandInEngine) -> None:
    flat = {**FUNCTION, "name": "f"}
    body = {"model": MODEL, "input": [{"role": "user", "content": "hi"}], "tools": [flat], "stream": True}
    answer = post(shared.gateway(), shared.key(), body)
    first = json.loads(answer.text.split("\n\n")[0].removeprefix("data: "))
    assert first["object"] == "chat.completion.chunk"
    assert answer.text.endswith("data: [DONE]\n\n")
    request = standing_engine.journal()["requests"][-1]
    assert request["path"] == "/v1/chat/completions"
    assert request["body"]["tools"][0]["function"]["name"] == "f"
    assert only_event(shared).event["endpoint"] == "chat"
