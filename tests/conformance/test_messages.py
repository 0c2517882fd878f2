"""The Anthropic SDK on `/v1/messages`, through the whole gateway."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AuthenticationError, NotFoundError

from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town
from tests.support.message_blocks import events, faults

TOOL: Any = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = {"tool": True, "tool_name": "get_weather", "tool_arguments": '{"city":"Paris"}'}
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"


def message(**steps: Any) -> dict[str, Any]:
    """What every SDK call here is made of."""
    content = "@engine " + json.dumps(steps) if steps else "hi"
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": content}]}


def post(gateway: Running, customer: Customer, body: Any, path: str = MESSAGES, **headers: str) -> httpx2.Response:
    told = {"x-api-key": customer.token, "anthropic-version": "2023-06-01", **headers}
    return httpx2.post(gateway.url + path, json=body, headers=told, timeout=20)


def client_of(town: Town, gateway: Running, plan: str = "enterprise") -> Anthropic:
    return Anthropic(base_url=gateway.url, api_key=town.key(plan).token, max_retries=0)


@pytest.fixture
def client(shared: Town) -> Iterator[Anthropic]:
    with client_of(shared, shared.gateway()) as built:
        yield built


def test_a_message_is_one_answer_one_receipt_one_event(shared: Town) -> None:
    with client_of(shared, shared.gateway(), "free") as client:
        raw = client.messages.with_raw_response.create(**message(cached_tokens=3, prompt_tokens=10), system="Be brief.")
    answer = raw.parse()
    assert [block.type for block in answer.content] == ["text"]
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == ("end_turn", 7, 3)
    assert raw.headers["x-faregate-fare"] == "1"
    assert raw.headers["anthropic-ratelimit-requests-limit"] == "60"
    assert raw.headers["anthropic-ratelimit-requests-remaining"] == "59"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", raw.headers["anthropic-ratelimit-requests-reset"])
    event = only_event(shared)
    assert raw.headers["request-id"] == raw.headers["x-request-id"] == raw.request_id == event.id
    assert (event.verdict, event.reason, event.event["endpoint"]) == ("posted", "answered", "messages")
    counted = [event.event[f"{name}_tokens"] for name in ("prompt", "cached", "completion")]
    assert counted == [10, 3, 3]


def test_a_stream_is_relayed_as_the_engine_sent_it(shared: Town, standing_engine: StandInEngine) -> None:
    body = {**message(chunks=20, reasoning=True), "stream": True}
    ours = post(shared.gateway(), shared.key(), body)
    assert ours.headers["content-type"] == "text/event-stream; charset=utf-8"
    theirs = httpx2.post(standing_engine.url + MESSAGES, json=body)
    left, right = (re.sub(r"chatcmpl-\d+", "", text) for text in (ours.text, theirs.text))
    assert left == right
    assert faults(ours.content) == []
    assert only_event(shared).event["completion_tokens"] == 20


@pytest.mark.parametrize("steps", [{}, {"split": True}, {"sse_comment": True}, {"chunks": 50}])
def test_the_sdks_own_stream_gathers_the_whole_message(client: Anthropic, steps: dict[str, Any]) -> None:
    with client.messages.stream(**message(**steps)) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "tok " * steps.get("chunks", 3)
    assert final.stop_reason == "end_turn"
    assert final.usage.input_tokens > 0
    assert final.usage.output_tokens == steps.get("chunks", 3)


def test_a_tool_is_called_and_its_result_answered(client: Anthropic, standing_engine: StandInEngine) -> None:
    asked = message(**CALL)
    with client.messages.stream(**asked, tools=[TOOL], tool_choice={"type": "auto"}) as stream:
        streamed = stream.get_final_message()
    whole = client.messages.create(**asked, tools=[TOOL])
    for answer in (streamed.to_dict(), whole.to_dict()):
        assert answer["stop_reason"] == "tool_use"
        assert calls(answer["content"]) == [("get_weather", {"city": "Paris"})]
    result: Any = {"type": "tool_result", "tool_use_id": "chatcmpl-tool-1", "content": [{"type": "text", "text": "18"}]}
    turns: Any = [*asked["messages"], {"role": "assistant", "content": streamed.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(**{**asked, "messages": turns}, tools=[TOOL])
    assert after.stop_reason == "end_turn"
    assert standing_engine.journal()["requests"][-1]["body"]["messages"][-1]["content"] == [result]


def calls(content: Any) -> list[tuple[str, Any]]:
    return [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]


def test_thoughts_come_in_a_block_of_their_own(client: Anthropic) -> None:
    asked = message(chunks=6, reasoning=True)
    with client.messages.stream(**asked, thinking={"type": "adaptive"}) as stream:
        kinds = [(block.type, getattr(block, block.type)) for block in stream.get_final_message().content]
    assert kinds == [("thinking", "tok tok tok "), ("text", "tok tok tok ")]
    assert [block.type for block in client.messages.create(**asked).content] == ["thinking", "text"]


def test_tokens_are_counted_at_no_fare(shared: Town, client: Anthropic) -> None:
    raw = client.messages.with_raw_response.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": 'a @engine {"x"'}], tools=[TOOL], system="Be brief."
    )
    assert raw.parse().input_tokens == 3
    assert raw.headers["x-faregate-fare"] == "0"
    event = only_event(shared)
    assert (event.verdict, event.event["endpoint"], event.event["fare"]) == ("posted", "count_tokens", 0)
    assert event.event["prompt_tokens"] is None


def test_counting_leaves_the_quota_as_it_was_and_goes_on_when_it_is_spent(shared: Town) -> None:
    plan = f"two{shared.key().account_id}"
    shared.plan(plan, quota_per_day=1)
    customer, gateway = shared.key(plan), shared.gateway()
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    assert post(gateway, customer, body, COUNT).headers["x-faregate-remaining"] == "1"
    assert post(gateway, customer, message()).headers["x-faregate-remaining"] == "0"
    assert post(gateway, customer, body, COUNT).json()["input_tokens"] == 1
    assert post(gateway, customer, message()).status_code == 429


def test_either_way_to_send_a_key_any_version_and_beta(shared: Town) -> None:
    customer, gateway = shared.key(), shared.gateway()
    bearer = httpx2.post(
        f"{gateway.url}{MESSAGES}?beta=true", json=message(), headers={**customer.headers, "anthropic-beta": "x,y"}
    )
    assert bearer.status_code == 200
    assert post(gateway, customer, message(), **{"anthropic-version": "2030-01-01"}).status_code == 200


def test_headers_of_the_client_are_not_the_engines(shared: Town, standing_engine: StandInEngine) -> None:
    post(shared.gateway(), shared.key(), message(), **{"anthropic-beta": "x", "x-claude-code-session-id": "s"})
    [request] = standing_engine.journal()["requests"]
    assert set(request["headers"]) == {"host", "content-type", "content-length", "accept"}


def test_no_engine_field_of_a_client_reaches_an_engine(shared: Town, standing_engine: StandInEngine) -> None:
    body = {**message(), "priority": -9, "cache_salt": "x", "kv_transfer_params": {}, "vllm_xargs": {}, "top_k": 5}
    assert post(shared.gateway(), shared.key(), body).status_code == 200
    [request] = standing_engine.journal()["requests"]
    assert set(request["body"]) == {"model", "max_tokens", "messages", "top_k", "cache_salt"}
    assert request["body"]["cache_salt"] != "x"  # ours


def test_what_a_coding_agent_sends_is_taken(shared: Town, standing_engine: StandInEngine) -> None:
    line = "x-anthropic-billing-header: cc_version=2.1.328.593; cc_entrypoint=sdk-cli; cch=00000;"
    body = {
        **message(),
        "stream": True,
        "system": [{"type": "text", "text": line}, {"type": "text", "text": "You.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{**TOOL, "defer_loading": True}],
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
    }
    body["messages"].append({"role": "system", "content": [{"type": "text", "text": "# Environment"}]})
    answer = post(shared.gateway(), shared.key(), body, f"{MESSAGES}?beta=true")
    assert [data["type"] for _, data in events(answer.content)][-1] == "message_stop"
    [request] = standing_engine.journal()["requests"]
    assert request["path"] == MESSAGES
    assert request["body"] == {**body, "system": body["system"][1:], "cache_salt": request["body"]["cache_salt"]}


def test_the_sdk_lists_models_in_its_own_shape_and_others_in_theirs(shared: Town, client: Anthropic) -> None:
    [model] = client.models.list(limit=1000)
    assert (model.type, model.id, model.display_name, model.lifecycle) == ("model", MODEL, "SmolLM2 135M Instruct", "active")
    assert client.models.retrieve(MODEL).id == MODEL
    theirs = httpx2.get(f"{shared.gateway().url}/v1/models", headers=shared.key().headers).json()
    assert (theirs["object"], theirs["data"][0]["object"]) == ("list", "model")


def test_the_sdk_is_told_of_a_model_and_a_key_that_are_not_there(shared: Town, client: Anthropic) -> None:
    with pytest.raises(NotFoundError) as unknown:
        client.models.retrieve("claude-unheard-of")
    assert unknown.value.type == "not_found_error"
    with Anthropic(base_url=shared.gateway().url, api_key="fare_live_x") as stranger, pytest.raises(AuthenticationError):
        stranger.models.list()
