"""The stand-in engine does what its script says, and sees a client leave at once: other suites lean on both."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from backends.client import Answer, EngineBroke, EngineClient, EngineFault, EngineSpokeNonsense, EngineUnreachable
from tests.support.engine_fixture import StandInEngine

StartEngine = Callable[..., StandInEngine]


@pytest.fixture
async def client() -> AsyncIterator[EngineClient]:
    client = EngineClient()
    yield client
    await client.close()


@pytest.fixture
def engine(stand_in_engine: StartEngine) -> StandInEngine:
    return stand_in_engine()


def ask(client: EngineClient, engine: StandInEngine, script: dict[str, Any], **fields: Any) -> Answer:
    message = {"role": "user", "content": "@engine " + json.dumps(script)}
    body = json.dumps({"model": "m", "messages": [message], **fields}).encode()
    return client.open(engine.replica(), "/v1/chat/completions", body, [(b"content-type", b"application/json")])


async def finish(answer: Answer) -> bytes:
    parts = []
    with answer:
        await answer.start()
        while part := await answer.read():
            parts.append(part)
    return b"".join(parts)


def frames(stream: bytes) -> list[Any]:
    assert stream.endswith(b"data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in stream.split(b"\n\n") if line.startswith(b"data: {")]


async def test_a_whole_answer_and_its_usage(client: EngineClient, engine: StandInEngine) -> None:
    answer = json.loads(await finish(ask(client, engine, {"chunks": 5, "prompt_tokens": 7, "cached_tokens": 2})))
    assert answer["choices"][0]["message"]["content"] == "tok " * 5
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}


@pytest.mark.parametrize(
    "script", [{}, {"split": True}, {"without_length": True}, {"sse_comment": True}, {"announce_close": True}]
)
async def test_a_stream_in_vllms_shape(client: EngineClient, engine: StandInEngine, script: dict[str, Any]) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    role, *content, usage = frames(await finish(ask(client, engine, script, **options)))
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["delta"] for chunk in content] == [{"content": "tok "}] * 3
    assert [chunk["choices"][0]["finish_reason"] for chunk in content] == [None, None, "stop"]
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 3)


async def test_a_limit_on_tokens_cuts_it_short(client: EngineClient, engine: StandInEngine) -> None:
    stream = frames(await finish(ask(client, engine, {"chunks": 9}, stream=True, max_completion_tokens=2)))
    assert stream[-1]["choices"][0]["finish_reason"] == "length"
    assert len(stream) == 3


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ({"die_after": 1}, EngineBroke),
        ({"exit_after": 1}, EngineBroke),
        ({"garbage": True}, EngineSpokeNonsense),
    ],
)
async def test_ways_to_fail(
    client: EngineClient, engine: StandInEngine, script: dict[str, Any], failure: type[EngineFault]
) -> None:
    with pytest.raises(failure):
        await finish(ask(client, engine, script, stream=True))


async def test_a_status_and_a_misspelt_script(client: EngineClient, engine: StandInEngine) -> None:
    for script, status in (({"status": 503, "retry_after": 7}, 503), ({"statsu": 503}, 418)):
        with ask(client, engine, script) as answer:
            await answer.start()
            assert answer.status == status
            assert (answer.headers.get(b"retry-after") == b"7") == (status == 503)
            assert json.loads(await answer.read())["error"]["code"] == status


async def test_errors_inside_a_stream_and_streams_without_output(client: EngineClient, engine: StandInEngine) -> None:
    assert "error" in frames(await finish(ask(client, engine, {"error_frame_first": True}, stream=True)))[0]
    assert "error" in frames(await finish(ask(client, engine, {"error_after": 2}, stream=True)))[3]
    empty = frames(await finish(ask(client, engine, {"empty": True}, stream=True)))
    assert not any(chunk["choices"][0]["delta"].get("content") for chunk in empty)
    cut = await finish(ask(client, engine, {"no_finish": True}, stream=True))
    assert b"[DONE]" not in cut
    assert b'"stop"' not in cut


@pytest.mark.parametrize("script", [{"hang": True}, {"delay_ms": 60_000}, {"hang_after": 2}, {"pace_ms": 20, "chunks": 1_000}])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_seen_at_once(
    client: EngineClient, engine: StandInEngine, script: dict[str, Any], stream: bool
) -> None:  # fmt: skip
    if not stream and "hang_after" in script:
        script = {"pace_ms": 60_000}
    task = asyncio.create_task(finish(ask(client, engine, script, stream=stream)))
    await asyncio.to_thread(engine.wait_for, lambda journal: journal["running"] == 1)
    await asyncio.sleep(0.05)
    left_ns = time.monotonic_ns()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    (entry,) = engine.wait_for(lambda journal: journal["running"] == 0)["requests"]
    assert entry["finished_ns"] is None
    assert 0 <= entry["aborted_ns"] - left_ns < 100_000_000


async def test_the_journal_counts_what_ran_at_once(client: EngineClient, engine: StandInEngine) -> None:
    await asyncio.gather(*(finish(ask(client, engine, {"delay_ms": 100})) for _ in range(7)))
    journal = engine.journal()
    assert (journal["high_water"], journal["running"], len(journal["requests"])) == (7, 0, 7)
    assert all(entry["received_ns"] < entry["first_byte_ns"] <= entry["finished_ns"] for entry in journal["requests"])
    engine.reset_journal()
    assert engine.journal()["requests"] == []


async def test_an_idle_connection_is_closed_as_uvicorn_does(client: EngineClient, stand_in_engine: StartEngine) -> None:
    engine = stand_in_engine(keep_alive_seconds=0.1)
    await finish(ask(client, engine, {}))
    assert client.open_connections == 1
    await asyncio.sleep(0.3)
    assert client.open_connections == 0
    await finish(ask(client, engine, {"close_keepalive": True}))
    await asyncio.sleep(0.05)
    assert client.open_connections == 0


async def test_a_dead_one_is_unreachable(client: EngineClient, engine: StandInEngine) -> None:
    engine.kill()
    with pytest.raises(EngineUnreachable):
        await finish(ask(client, engine, {}))
