"""Recorded answers through a running gateway: the client's socket gets what the engine sent, less what docs/edits.md says."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import redis

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS
from gateway.api.dialect import Question
from tests.journeys.replay import Replayer, replaying
from tests.recordings.recording import recorded
from tests.support.gateway import Running, Town, town, wait_for
from tests.support.services import PostgresServer, ValkeyServer
from tests.support.stream import settled

MODELS = {"vllm": "qwen3-8b", "llamacpp": "smollm2-135m-instruct"}
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def engine() -> Iterator[Replayer]:
    with replaying() as replayer:
        yield replayer


@pytest.fixture(scope="module")
def installed(
    postgres_server: PostgresServer, valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory, engine: Replayer
) -> Iterator[tuple[Town, Running]]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    fleet = "".join(engine.fleet_entry(model, kind, name=kind) for kind, model in MODELS.items())
    with (
        postgres_server.database() as database_url,
        town(database_url, valkey_server.url, tmp_path_factory.mktemp("relay"), fleet) as built,
    ):
        yield built, built.gateway()


def ask(installed: tuple[Town, Running], kind: str, **fields: Any) -> tuple[httpx2.Response, Any]:
    built, gateway = installed
    customer = built.key("pro")
    body = {"model": MODELS[kind], "messages": HI, **fields}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=customer.headers, timeout=30)
    wait_for(lambda: len(settled(built.redis_url, customer)) == 1)
    return answer, settled(built.redis_url, customer)[0]


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("vllm", "chat-tools-auto-two-stream"),
        ("vllm", "chat-many-bytes-stream"),
        ("vllm", "reasoning-chat-stream"),
        ("llamacpp", "chat-plain-stream"),
    ],
)
@pytest.mark.parametrize("how", ["as it came", "byte by byte", "in one piece"])
def test_a_recorded_stream(installed: tuple[Town, Running], engine: Replayer, kind: str, case: str, how: str) -> None:
    found = recorded(kind, case)
    body = found.answer.body
    crumbs = [body[at : at + 1] for at in range(len(body))]
    engine.pieces = {"as it came": found.answer.pieces(), "byte by byte": crumbs, "in one piece": [body]}[how]
    answer, event = ask(installed, kind, stream=True, stream_options={"include_usage": True})
    reader = CHUNKS.reader(Question({}, True, ENGINE_KINDS[kind]))
    assert answer.content == reader.feed(body) + reader.end()
    assert answer.content.count(b"\n\n") == body.count(b"\n\n")
    assert (event.verdict, event.event["completion_tokens"]) == ("posted", _counted(body))


def _counted(body: bytes) -> int:
    frames = [json.loads(frame[6:]) for frame in body.split(b"\n\n") if frame.startswith(b"data: {")]
    return int(frames[-1]["usage"]["completion_tokens"])


def test_one_event_of_ten_megabytes(installed: tuple[Town, Running], engine: Replayer) -> None:
    def frame(delta: dict[str, str], finish: str | None) -> bytes:
        return (
            b'data: {"choices":[%b]}\n\n'
            % json.dumps(
                {"index": 0, "delta": delta, "finish_reason": finish}, separators=(",", ":"), ensure_ascii=False
            ).encode()
        )

    body = frame({"role": "assistant", "content": "a"}, None) + frame({"content": "é" * 5_000_000}, None) + frame({}, "stop")
    engine.pieces = [body]
    answer, event = ask(installed, "vllm", stream=True)
    assert answer.content == body + b"data: [DONE]\n\n"
    assert event.verdict == "posted"


def test_an_engine_that_was_killed_in_the_middle_has_not_answered(installed: tuple[Town, Running], engine: Replayer) -> None:
    engine.pieces = recorded("vllm", "chat-broken-stream").answer.pieces()
    answer, event = ask(installed, "vllm", stream=True)
    *before, error, done, end = answer.content.split(b"\n\n")
    assert json.loads(error[6:])["error"]["code"] == "engine_failed"
    assert (done, end) == (b"data: [DONE]", b"")
    assert b'"content":"' in b"".join(before)
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


def test_a_whole_answer_with_a_named_call(installed: tuple[Town, Running], engine: Replayer) -> None:
    found = recorded("vllm", "chat-tools-named")
    engine.content_type, engine.pieces = "application/json", [found.answer.body]
    try:
        answer, event = ask(installed, "vllm", tools=found.call.body["tools"], tool_choice=found.call.body["tool_choice"])
    finally:
        engine.content_type = "text/event-stream"
    before = found.answer.json()
    before["choices"][0]["finish_reason"] = "tool_calls"
    assert answer.json() == before
    assert engine.asked[-1]["tool_choice"] == found.call.body["tool_choice"]
    assert event.verdict == "posted"
