"""Client gone, GPU free: the socket closes at once, at every stage and on every way out."""

import asyncio
import time
from collections.abc import Callable

import pytest

from backends.client import Aborted, Answer, EngineClient
from backends.connection import Connection
from backends.fleet import Replica
from tests.backends.client.raw_engine import OK, Peer, call, finish, post, raw_engine
from tests.backends.client.test_patience import full_backlog as full_backlog

AT_ONCE_SECONDS = 0.05


class Watched:
    """Serves up to a stage, then notes when its peer left."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.left_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def serve(self, peer: Peer) -> None:
        if self.stage != "sending":
            await peer.request()
        if self.stage == "head":
            peer.say(b"HTTP/1.1 200 OK\r\n")
        if self.stage == "streaming":
            peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
        if self.stage == "sending":
            await asyncio.sleep(0.1)  # reads nothing of 64 MB, so that most of it is still ours
        self.left_at.set_result(await peer.gone())


STAGES = ["sending", "waiting", "head", "streaming"]
WAYS: dict[str, Callable[[Answer, "asyncio.Task[None]"], object]] = {
    "abort": lambda answer, task: answer.abort(),
    "cancel": lambda answer, task: task.cancel(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stage", STAGES)
async def test_the_engine_sees_it_at_once(client: EngineClient, stage: str, way: str) -> None:
    watched = Watched(stage)
    async with raw_engine(watched.serve) as engine:
        answer = post(client, engine.replica, b"x" * (64 * 1024 * 1024 if stage == "sending" else 2))
        reading = asyncio.create_task(_read_all(answer))
        await asyncio.sleep(0.05 if stage == "sending" else 0.1)
        began = time.monotonic()
        WAYS[way](answer, reading)
        with pytest.raises(Aborted if way == "abort" else asyncio.CancelledError):
            await reading
        assert time.monotonic() - began < AT_ONCE_SECONDS
        left_at = await watched.left_at
        assert stage == "sending" or left_at - began < AT_ONCE_SECONDS
        assert client.open_connections == 0


@pytest.mark.parametrize("way", WAYS)
async def test_while_connecting(client: EngineClient, full_backlog: Replica, way: str) -> None:
    answer = post(client, full_backlog)
    reading = asyncio.create_task(_read_all(answer))
    await asyncio.sleep(0.05)
    assert client.open_connections == 1
    began = time.monotonic()
    WAYS[way](answer, reading)
    with pytest.raises(Aborted if way == "abort" else asyncio.CancelledError):
        await reading
    await asyncio.sleep(0)
    assert time.monotonic() - began < AT_ONCE_SECONDS
    assert client.open_connections == 0


@pytest.mark.parametrize("way", WAYS)
async def test_in_every_tick_of_connecting_and_sending(client: EngineClient, way: str) -> None:
    """Wherever the loop stands between the call and the answer, nothing stays open."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with raw_engine(serve) as engine:
        for ticks in range(30):
            answer = post(client, engine.replica)
            reading = asyncio.create_task(_read_all(answer))
            for _ in range(ticks):
                await asyncio.sleep(0)
            WAYS[way](answer, reading)
            with pytest.raises((Aborted, asyncio.CancelledError)):
                await reading
            await asyncio.sleep(0.002)
            assert client.open_connections == 0, ticks


async def test_leaving_the_block_early_closes(client: EngineClient) -> None:
    watched = Watched("streaming")
    async with raw_engine(watched.serve) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            assert await answer.read() == b"ok"
        began = time.monotonic()
        assert await watched.left_at - began < AT_ONCE_SECONDS


async def test_an_exception_in_the_block_closes(client: EngineClient) -> None:
    watched = Watched("streaming")
    async with raw_engine(watched.serve) as engine:
        with pytest.raises(ZeroDivisionError), post(client, engine.replica) as answer:
            1 // len(await _failing_reader(answer))
        began = time.monotonic()
        assert await watched.left_at - began < AT_ONCE_SECONDS


async def test_the_reason_is_told_and_the_first_one_stands(client: EngineClient) -> None:
    async with raw_engine(Watched("waiting").serve) as engine:
        answer = post(client, engine.replica)
        reading = asyncio.create_task(_read_all(answer))
        await asyncio.sleep(0.02)
        reason = ConnectionError("hung up")
        answer.abort(reason)
        answer.abort(ValueError("too late"))
        with pytest.raises(Aborted) as failure:
            await reading
        assert failure.value.reason is reason


async def test_bytes_that_came_before_an_abort_are_not_read_after_it(client: EngineClient) -> None:
    async with raw_engine(Watched("streaming").serve) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            answer.abort()
            with pytest.raises(Aborted):
                await answer.read()


async def test_an_abort_before_the_start_dials_nothing(client: EngineClient) -> None:
    async with raw_engine(Watched("waiting").serve) as engine:
        answer = post(client, engine.replica)
        answer.abort()
        with pytest.raises(Aborted), answer:
            await answer.start()
        await asyncio.sleep(0.01)
        assert not engine.peers


async def test_an_abort_in_the_instant_in_which_the_head_arrives(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = Connection.on_headers_complete

    def arrive_and_abort(connection: Connection) -> None:
        arrived(connection)
        answer.abort()

    monkeypatch.setattr(Connection, "on_headers_complete", arrive_and_abort)
    async with raw_engine(_answering) as engine:
        answer = post(client, engine.replica)
        with pytest.raises(Aborted), answer:
            await answer.start()
        await asyncio.sleep(0.01)
        assert client.open_connections == 0


async def test_an_abort_after_the_start_of_a_kept_connection_closes_it(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        await peer.request()
        left_at.set_result(await peer.gone())

    left_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    async with raw_engine(serve) as engine:
        await call(client, engine.replica)
        answer = post(client, engine.replica)
        reading = asyncio.create_task(_read_all(answer))
        await asyncio.sleep(0.02)
        began = time.monotonic()
        answer.abort()
        with pytest.raises(Aborted):
            await reading
        assert await left_at - began < AT_ONCE_SECONDS
        assert len(engine.peers) == 1, "an abort is no reason to ask again"


async def test_an_abort_after_the_end_changes_nothing(client: EngineClient) -> None:
    async with raw_engine(_answering) as engine:
        with post(client, engine.replica) as answer:
            await finish(answer)
        answer.abort()
        assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 1


async def _answering(peer: Peer) -> None:
    while True:
        await peer.request()
        peer.say(OK)


async def _failing_reader(answer: Answer) -> bytes:
    await answer.start()
    assert await answer.read() == b"ok"
    return b""


async def _read_all(answer: Answer) -> None:
    with answer:
        await finish(answer)
