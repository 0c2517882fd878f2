"""Engines that fall silent, and who is to blame for it."""

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from backends.client import EngineClient, EngineTimedOut, EngineUnreachable
from backends.fleet import Replica
from tests.backends.client.raw_engine import OK, Peer, call, post, raw_engine, replica_at


async def test_an_engine_that_never_answers(hasty: EngineClient) -> None:
    async with raw_engine(_silent) as engine:
        with pytest.raises(EngineTimedOut) as failure:
            await call(hasty, engine.replica)
        assert failure.value.stage == "first_byte"
        await asyncio.sleep(0.01)
        assert hasty.open_connections == 0


async def test_headers_that_drip_are_as_late_as_none(hasty: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\n")
        while True:
            peer.say(b"a: b\r\n")
            await asyncio.sleep(0.03)

    async with raw_engine(serve) as engine:
        with pytest.raises(EngineTimedOut) as failure:
            await call(hasty, engine.replica)
        assert failure.value.stage == "first_byte"


@pytest.mark.parametrize("drip", [b"", b"x"], ids=["nothing", "a chunk's extension"])
async def test_a_stream_that_stalls(hasty: EngineClient, drip: bytes) -> None:
    """Bytes that are no content don't count as a sign of life."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n2;")
        while True:
            await asyncio.sleep(0.03)
            peer.say(drip)

    async with raw_engine(serve) as engine:
        with post(hasty, engine.replica) as answer:
            await answer.start()
            assert await answer.read() == b"ok"
            with pytest.raises(EngineTimedOut) as failure:
                await answer.read()
        assert failure.value.stage == "between_bytes"


async def test_a_slow_stream_is_no_stalled_one(hasty: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n")
        for _ in range(6):
            await asyncio.sleep(0.06)
            peer.say(b"x")
        await peer.gone()

    async with raw_engine(serve) as engine:
        assert await call(hasty, engine.replica) == (200, b"xxxxxx")


async def test_a_reader_that_dawdles_is_not_the_engines_fault(hasty: EngineClient) -> None:
    size = 32 * 1024 * 1024

    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 65536):
            peer.say(b"x" * 65536)
            await peer.writer.drain()
        await peer.gone()

    async with raw_engine(serve) as engine:
        with post(hasty, engine.replica) as answer:
            await answer.start()
            await asyncio.sleep(0.5)
            read = 0
            while part := await answer.read():
                read += len(part)
        assert read == size


async def test_an_engine_that_was_held_back_gets_its_whole_time_again(hasty: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 400002\r\n\r\n" + b"x" * 400_000)  # enough to be held back, all of it read
        await resumed.wait()
        await asyncio.sleep(0.1)
        peer.say(b"ok")
        await peer.gone()

    resumed = asyncio.Event()
    async with raw_engine(serve) as engine:
        with post(hasty, engine.replica) as answer:
            await answer.start()
            await asyncio.sleep(0.5)
            read = len(await answer.read())
            resumed.set()
            while part := await answer.read():
                read += len(part)
        assert read == 400_002


async def test_an_engine_that_takes_no_connection(hasty: EngineClient, full_backlog: Replica) -> None:
    with pytest.raises(EngineUnreachable, match=r"within 0\.2 s"):
        await call(hasty, full_backlog)
    assert hasty.open_connections == 0


async def test_an_idle_connection_is_closed_before_the_engine_would(hasty: EngineClient) -> None:
    async with raw_engine(_answering) as engine:
        await call(hasty, engine.replica)
        assert hasty.open_connections == 1
        await asyncio.sleep(0.4)
        assert hasty.open_connections == 0
        await call(hasty, engine.replica)
        assert len(engine.peers) == 2


async def test_one_that_expired_while_the_loop_was_busy_is_not_handed_out(hasty: EngineClient) -> None:
    async with raw_engine(_answering) as engine:
        await call(hasty, engine.replica)
        time.sleep(0.25)  # noqa: ASYNC251  (nothing is swept meanwhile, and that is the point)
        await call(hasty, engine.replica)
        assert len(engine.peers) == 2


async def test_idle_time_counts_from_the_last_use(hasty: EngineClient) -> None:
    async with raw_engine(_answering) as engine:
        for _ in range(5):
            await call(hasty, engine.replica)
            await asyncio.sleep(0.06)
        assert len(engine.peers) == 1


@pytest.fixture
def full_backlog() -> Iterator[Replica]:
    """A port that listens and whose queue is full: the kernel drops what comes on top."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(address)
        yield replica_at(f"http://127.0.0.1:{address[1]}")
        for sock in waiting:
            sock.close()


async def _silent(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


async def _answering(peer: Peer) -> None:
    while True:
        await peer.request()
        peer.say(OK)
