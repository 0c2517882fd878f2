"""Recorded answers through a running gateway: the client's socket gets what the engine sent, less what docs/edits.md says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS
from gateway.api.dialect import Question
from tests.journeys.replay import Replayer, replaying
from tests.recordings.recording import recorded
from tests.support.gateway import BuildTown, Running, Town, wait_for
from tests.support.stream import settled

MODELS = {"vllm": "qwen3-8b", "llamacpp": "smollm2-135m-instruct"}
HI = [{"role": "user", "content": "hi"}]
WHOLE = recorded("vllm", "chat-plain").answer.body


@pytest.fixture(scope="module")
def engine() -> Iterator[Replayer]:
    with replaying() as replayer:
        yield replayer


@pytest.fixture(scope="module")
def installed(build_town: BuildTown, engine: Replayer) -> Iterator[tuple[Town, Running]]:
    with build_town("".join(engine.fleet_entry(model, kind, name=kind) for kind, model in MODELS.items())) as built:
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
    """apisix#177: what had come by then was thrown away."""
    engine.pieces, engine.pause_seconds = recorded("vllm", "chat-broken-stream").answer.pieces(), 0.01
    answer, event = ask(installed, "vllm", stream=True)
    engine.pause_seconds = 0.0
    *before, error, done, end = answer.content.split(b"\n\n")
    assert json.loads(error[6:])["error"]["code"] == "engine_failed"
    assert (done, end) == (b"data: [DONE]", b"")
    assert b'"content":"' in b"".join(before)
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


def test_what_stood_before_an_error_in_the_same_read_is_delivered(installed: tuple[Town, Running], engine: Replayer) -> None:
    *begun, last, error, _ = [frame + b"\n\n" for frame in recorded("vllm", "chat-broken-stream").answer.body.split(b"\n\n")[:-1]]
    engine.pieces, engine.pause_seconds = [b"".join(begun), last + error], 0.3
    answer, event = ask(installed, "vllm", stream=True)
    engine.pause_seconds = 0.0
    assert answer.content.startswith(b"".join(begun) + last)
    assert json.loads(answer.content.split(b"\n\n")[-3][6:])["error"]["code"] == "engine_failed"
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


@pytest.mark.parametrize(
    ("stream", "kind", "body"),
    [
        (True, "application/json", WHOLE),
        (True, "text/html", b"<html>Bad gateway</html>"),
        (False, "application/json", b'{"error":{"message":"CUDA","type":"x","param":null,"code":500}}'),
        (False, "text/html", b"<html>Bad gateway</html>"),
        (False, "text/event-stream", recorded("vllm", "chat-plain-stream").answer.body),
    ],
)
def test_a_200_that_is_no_answer_is_a_502(
    installed: tuple[Town, Running], engine: Replayer, stream: bool, kind: str, body: bytes
) -> None:
    """OpenCode sent such a request again 310 times in 15 s; most SDKs make an empty success of it."""
    with sending(engine, "application/json", WHOLE):  # else the faults add up, and the engine is not asked
        assert ask(installed, "vllm")[0].status_code == 200
    with sending(engine, kind, body):
        answer, event = ask(installed, "vllm", stream=stream)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "engine_failed")
    assert (event.verdict, event.reason) == ("voided", "engine_broke")


@contextmanager
def sending(engine: Replayer, kind: str, body: bytes, *headers: str) -> Iterator[None]:
    before = engine.content_type
    engine.content_type, engine.pieces, engine.headers = kind, [body], headers
    try:
        yield
    finally:
        engine.content_type, engine.headers = before, ()


@pytest.mark.parametrize("stream", [False, True])
def test_headers_that_an_engine_or_a_hop_behind_us_left_behind_are_not_told(
    installed: tuple[Town, Running], engine: Replayer, stream: bool
) -> None:
    """OmniRoute#2291, open-webui#23876: a stale content-encoding, and clients could not read what was plain."""
    theirs = ("content-encoding: gzip", "server: uvicorn", "x-request-id: theirs", "set-cookie: a=b", "x-internal: 10.0.0.7")
    kind = "text/event-stream" if stream else "application/json"
    body = recorded("vllm", "chat-plain-stream").answer.body if stream else WHOLE
    with sending(engine, kind, body, *theirs):
        answer, event = ask(installed, "vllm", stream=stream)
    assert answer.status_code == 200
    assert b'"content":"' in answer.content
    assert answer.headers["x-request-id"] == event.id
    assert not {"content-encoding", "server", "set-cookie", "x-internal"} & answer.headers.keys()


def test_a_whole_answer_with_a_named_call(installed: tuple[Town, Running], engine: Replayer) -> None:
    found = recorded("vllm", "chat-tools-named")
    with sending(engine, "application/json", found.answer.body):
        answer, event = ask(installed, "vllm", tools=found.call.body["tools"], tool_choice=found.call.body["tool_choice"])
    before = found.answer.json()
    before["choices"][0]["finish_reason"] = "tool_calls"
    assert answer.json() == before
    assert engine.asked[-1]["tool_choice"] == found.call.body["tool_choice"]
    assert event.verdict == "posted"
