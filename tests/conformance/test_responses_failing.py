"""What goes wrong on `/v1/responses`, as the OpenAI SDK sees it, and what the ledger says of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import APIError, APIStatusError, OpenAI

from tests.conformance.test_responses import script
from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event, post
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town

BROKEN = [{"die_after": 2, "pace_ms": 20}, {"error_after": 2, "pace_ms": 20}, {"no_finish": True, "pace_ms": 20}]
WHY = "The engine failed before its answer was complete."


@pytest.fixture
def client(shared: Town) -> Iterator[OpenAI]:
    with client_of(shared, shared.gateway()) as built:
        yield built


def client_of(town: Town, gateway: Running) -> OpenAI:
    return OpenAI(base_url=f"{gateway.url}/v1", api_key=town.key().token, max_retries=0)


def names(text: str) -> list[str]:
    return [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("steps", "status", "code", "reason"),
    [
        ({"status": 500}, 502, "engine_failed", "engine_broke"),
        ({"status": 503}, 503, "server_is_overloaded", "no_capacity"),
        ({"status": 400}, 400, None, "engine_refused"),
        ({"die_after": 0}, 502, "engine_failed", "engine_broke"),
    ],
)
def test_a_failure_before_output_is_a_status(
    shared: Town, client: OpenAI, steps: dict[str, Any], status: int, code: str | None, reason: str, stream: bool
) -> None:
    asked: Any = {"model": MODEL, "input": script(**steps), "stream": stream}
    with pytest.raises(APIStatusError) as failed:
        client.responses.create(**asked)
    assert (failed.value.status_code, failed.value.code) == (status, code)
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", reason)


@pytest.mark.parametrize("steps", [{"error_frame_first": True}, {"no_finish": True, "chunks": 0}])
def test_a_stream_that_fails_before_output_still_has_a_status(shared: Town, client: OpenAI, steps: dict[str, Any]) -> None:
    with pytest.raises(APIStatusError) as failed:
        client.responses.create(model=MODEL, input=script(**steps), stream=True)
    assert failed.value.status_code == 502
    assert only_event(shared).verdict == "voided"


@pytest.mark.parametrize("steps", BROKEN)
def test_a_stream_that_the_engine_breaks_raises_and_is_not_billed(shared: Town, client: OpenAI, steps: dict[str, Any]) -> None:
    seen: list[str] = []
    stream = client.responses.create(model=MODEL, input=script(**steps), stream=True)
    with pytest.raises(APIError) as failed:
        seen.extend(event.type for event in stream)
    assert failed.value.code == "engine_failed"
    assert failed.value.message.startswith(WHY)  # not in the engine's words, which may quote a prompt
    assert seen[0] == "response.created"
    assert seen[-1] == "response.failed"
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


@pytest.mark.parametrize("steps", BROKEN)
def test_the_sdks_own_stream_raises_too(client: OpenAI, steps: dict[str, Any]) -> None:
    with client.responses.stream(model=MODEL, input=script(**steps)) as stream, pytest.raises(APIError) as failed:
        stream.until_done()
    assert failed.value.code == "engine_failed"


def test_nothing_follows_the_error(shared: Town) -> None:
    answer = post(shared.gateway(), shared.key(), {"model": MODEL, "input": script(**BROKEN[1]), "stream": True}, "/v1/responses")
    assert names(answer.text)[-2:] == ["response.failed", "error"]
    assert answer.text.endswith("}\n\n")
    assert "[DONE]" not in answer.text


def test_a_failure_after_the_commit_is_told_as_a_failed_answer(shared: Town) -> None:
    gateway = shared.gateway(commit_seconds=0.1)
    given = script(delay_ms=400, status=500)
    answer = post(gateway, shared.key(), {"model": MODEL, "input": given, "stream": True}, "/v1/responses")
    assert answer.status_code == 200
    assert answer.text.startswith(": waiting\n\n")
    assert names(answer.text) == ["response.created", "response.failed", "error"]
    with client_of(shared, gateway) as client, client.responses.stream(model=MODEL, input=given) as stream:
        with pytest.raises(APIError) as failed:
            stream.until_done()
        assert failed.value.code == "engine_failed"


def test_a_total_time_out_after_output_ends_as_incomplete_and_is_billed(shared: Town) -> None:
    with client_of(shared, shared.gateway(total_seconds=0.6)) as client:
        *_, last = client.responses.create(model=MODEL, input=script(chunks=100, pace_ms=50), stream=True)
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == "max_output_tokens"
    event = only_event(shared)
    assert (event.verdict, event.reason, event.event["tokens_estimated"]) == ("posted", "answered", True)


def test_a_stream_that_waits_is_kept_open_by_comments_that_the_sdk_reads_over(shared: Town) -> None:
    gateway = shared.gateway(commit_seconds=0.2)
    with client_of(shared, gateway) as client, client.responses.stream(model=MODEL, input=script(delay_ms=600)) as stream:
        assert stream.get_final_response().output_text == "tok tok tok "


def test_a_client_that_hangs_up_frees_the_engine(client: OpenAI, standing_engine: StandInEngine) -> None:
    stream = client.responses.create(model=MODEL, input=script(chunks=500, pace_ms=20), stream=True)
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    stream.close()
    journal = standing_engine.wait_for(lambda journal: journal["running"] == 0)
    assert journal["requests"][-1]["aborted_ns"] is not None


def test_no_engine_field_of_a_client_reaches_an_engine(shared: Town, standing_engine: StandInEngine) -> None:
    body = {
        "model": MODEL, "input": "hi", "priority": -9, "cache_salt": "x", "request_id": "resp_mine", "session_id": "s",
        "kv_transfer_params": {}, "previous_input_messages": [], "n": 4, "max_tokens": 10**6, "top_k": 5,
    }  # fmt: skip
    answer = post(shared.gateway(), shared.key(), body, "/v1/responses")
    assert answer.status_code == 200
    [request] = standing_engine.journal()["requests"]
    assert set(request["body"]) == {"model", "input", "store", "top_k", "cache_salt"}
    assert request["body"]["cache_salt"] != "x"  # ours
    assert only_event(shared).event["fare"] == 1
    assert json.loads(answer.text)["status"] == "completed"
