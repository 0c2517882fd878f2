"""What goes wrong on `/v1/messages`, as the Anthropic SDK sees it, and what the ledger says of it."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from anthropic import (
    Anthropic,
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
)

from tests.conformance.test_messages import COUNT, MESSAGES, client_of, message, post
from tests.journeys.conftest import MODEL
from tests.journeys.test_one_call import only_event
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town
from tests.support.message_blocks import events, faults

BROKEN = [{"die_after": 2, "pace_ms": 20}, {"error_after": 2, "pace_ms": 20}, {"no_finish": True, "pace_ms": 20}]
PING = 'event: ping\ndata: {"type": "ping"}\n\n'


@pytest.fixture
def client(shared: Town) -> Iterator[Anthropic]:
    with client_of(shared, shared.gateway()) as built:
        yield built


def ask(client: Anthropic, *, stream: bool = False, **asked: Any) -> Any:
    return client.messages.create(**{**message(), **asked}, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("steps", "told", "kind", "reason"),
    [
        ({"status": 500}, (InternalServerError, 502), "api_error", "engine_broke"),
        ({"status": 503}, (OverloadedError, 529), "overloaded_error", "no_capacity"),
        ({"status": 400}, (BadRequestError, 400), "invalid_request_error", "engine_refused"),
        ({"status": 422}, (BadRequestError, 400), "invalid_request_error", "engine_refused"),
        ({"die_after": 0}, (InternalServerError, 502), "api_error", "engine_broke"),
    ],
)
def test_a_failure_before_output_is_a_status(
    shared: Town, steps: dict[str, Any], told: tuple[type[APIStatusError], int], kind: str, reason: str, stream: bool
) -> None:
    with client_of(shared, shared.gateway()) as client, pytest.raises(told[0]) as failed:
        ask(client, stream=stream, **message(**steps))
    assert (failed.value.status_code, failed.value.type) == (told[1], kind)
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", reason)
    assert failed.value.request_id == event.id
    assert isinstance(failed.value.body, dict)
    assert failed.value.body["request_id"] == event.id


@pytest.mark.parametrize("steps", [{"error_frame_first": True}, {"no_finish": True, "chunks": 0}])
def test_a_stream_that_fails_before_output_still_has_a_status(shared: Town, client: Anthropic, steps: dict[str, Any]) -> None:
    with pytest.raises(InternalServerError):
        ask(client, stream=True, **message(**steps))
    assert only_event(shared).verdict == "voided"


@pytest.mark.parametrize("steps", BROKEN)
def test_a_stream_that_the_engine_breaks_raises_and_is_not_billed(shared: Town, client: Anthropic, steps: dict[str, Any]) -> None:
    seen: list[str] = []
    with pytest.raises(APIStatusError) as failed:
        seen.extend(event.type for event in ask(client, stream=True, **message(**steps)))
    assert failed.value.type == "api_error"
    assert "the engine failed" not in str(failed.value)  # its words may quote a prompt
    assert seen[-1] == "content_block_delta"
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


@pytest.mark.parametrize("steps", BROKEN)
def test_the_sdks_own_stream_raises_too(client: Anthropic, steps: dict[str, Any]) -> None:
    with pytest.raises(APIStatusError), client.messages.stream(**message(**steps)) as stream:
        stream.until_done()


def test_nothing_follows_the_error(shared: Town) -> None:
    answer = post(shared.gateway(), shared.key(), {**message(**BROKEN[1]), "stream": True})
    assert [name for name, _ in events(answer.content)][-2:] == ["content_block_delta", "error"]
    assert answer.text.endswith("}\n\n")


def test_an_empty_answer_is_delivered_and_not_billed(shared: Town, client: Anthropic) -> None:
    with client.messages.stream(**message(empty=True)) as stream:
        assert stream.get_final_message().content == []
    event = only_event(shared)
    assert (event.verdict, event.reason) == ("voided", "empty_answer")


def test_a_stream_that_waits_is_kept_open_by_pings_and_may_still_fail(shared: Town) -> None:
    gateway = shared.gateway(commit_seconds=0.1)
    failing = message(delay_ms=300, status=500)
    answer = post(gateway, shared.key(), {**failing, "stream": True})
    assert answer.status_code == 200
    assert answer.text.startswith(PING)
    assert [name for name, _ in events(answer.content)] == ["error"]
    with client_of(shared, gateway) as client:
        with pytest.raises(APIStatusError), client.messages.stream(**failing) as stream:
            stream.until_done()
        with client.messages.stream(**message(delay_ms=300)) as stream:
            assert stream.get_final_text() == "tok tok tok "


def test_a_total_time_out_after_output_ends_as_max_tokens_and_is_billed(shared: Town) -> None:
    gateway = shared.gateway(total_seconds=0.5)
    with client_of(shared, gateway) as client, client.messages.stream(**message(chunks=100, pace_ms=50)) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "max_tokens"
    event = only_event(shared)
    assert (event.verdict, event.reason, event.event["tokens_estimated"]) == ("posted", "answered", True)
    assert final.usage.output_tokens == event.event["completion_tokens"] > 0
    assert event.event["prompt_tokens"] == final.usage.input_tokens
    for steps in ({"tool": True, "hang_after": 1}, {"chunks": 9, "hang_after": 5, "reasoning": True}):
        assert faults(post(gateway, shared.key(), {**message(**steps), "stream": True}).content) == []


def test_a_client_that_hangs_up_frees_the_engine(client: Anthropic, standing_engine: StandInEngine) -> None:
    stream = ask(client, stream=True, **message(chunks=90, pace_ms=20))
    for event in stream:
        if event.type == "content_block_delta":
            break
    stream.close()
    journal = standing_engine.wait_for(lambda journal: journal["running"] == 0)
    assert journal["requests"][-1]["aborted_ns"] is not None


def test_what_a_client_does_wrong_has_the_sdks_own_names(shared: Town, client: Anthropic) -> None:
    for wrong, error, words in (
        ({"model": "claude-unheard-of"}, NotFoundError, "does not exist here"),
        ({"messages": []}, BadRequestError, "messages: must be a list"),
        ({"max_tokens": 0}, BadRequestError, "max_tokens"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, BadRequestError, "tools.0: 'web_search_20250305'"),
    ):
        with pytest.raises(error, match=words):
            ask(client, **wrong)
    with pytest.raises(AuthenticationError), Anthropic(base_url=shared.gateway().url, api_key="fare_live_x") as stranger:
        ask(stranger)
    limited = shared.key(allowed_models=("qwen3-8b",))
    with pytest.raises(PermissionDeniedError), Anthropic(base_url=shared.gateway().url, api_key=limited.token) as narrow:
        ask(narrow)


def test_a_spent_quota_is_said_once_and_a_rate_is_waited_for(shared: Town) -> None:
    """A retry of the first would go on until midnight; with a Retry-After the SDK would sleep till then."""
    plan = f"one{shared.key().account_id}"
    shared.plan(plan, quota_per_day=1)
    answers: list[httpx2.Response] = []
    hook = httpx2.Client(event_hooks={"response": [answers.append]})
    with Anthropic(base_url=shared.gateway().url, api_key=shared.key(plan).token, max_retries=2, http_client=hook) as client:
        ask(client)
        with pytest.raises(RateLimitError, match="You have used 1 of 1 requests today") as failed:
            ask(client)
    assert [answer.status_code for answer in answers] == [200, 429]
    assert failed.value.type == "rate_limit_error"
    assert "retry-after" not in failed.value.response.headers
    assert failed.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"


def test_the_sdk_comes_back_after_an_overload(shared: Town, standing_engine: StandInEngine) -> None:
    once = Anthropic(base_url=shared.gateway().url, api_key=shared.key().token, max_retries=1)
    with once as client, pytest.raises(OverloadedError) as failed:
        ask(client, **message(status=503))
    assert 1 <= int(failed.value.response.headers["retry-after"]) <= 60
    assert len(standing_engine.journal()["requests"]) == 2


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", MESSAGES, 405, "invalid_request_error"),
        ("DELETE", COUNT, 405, "invalid_request_error"),
        ("POST", "/v1/messages/batches", 404, "not_found_error"),
        ("GET", "/v1/messages/batches/b1", 404, "not_found_error"),
    ],
)
def test_what_is_not_served_below_messages_says_so_in_its_envelope(
    shared: Town, method: str, path: str, status: int, kind: str
) -> None:
    answer = httpx2.request(method, shared.gateway().url + path, headers=shared.key().headers)
    assert (answer.status_code, answer.json()["type"], answer.json()["error"]["type"]) == (status, "error", kind)
    assert answer.json()["request_id"] == answer.headers["request-id"]
    if status == 405:
        assert answer.headers["allow"] == "POST"


def test_a_count_that_an_engine_does_not_give_is_an_error(shared: Town, client: Anthropic) -> None:
    with pytest.raises(InternalServerError):
        client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": '@engine {"status": 500}'}])
    assert only_event(shared).verdict == "voided"
    with pytest.raises(BadRequestError, match="does not stream"):
        client.messages.count_tokens(model=MODEL, messages=[], extra_body={"stream": True})
