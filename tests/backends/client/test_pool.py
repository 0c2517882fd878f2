"""Connections are kept for the next call, and none is ever lost, handed out dead or left open."""

import asyncio
import contextlib
import os
import random

import pytest

from backends import client as client_module
from backends.client import Aborted, EngineClient, EngineFault, EngineUnreachable
from backends.fleet import Replica
from tests.backends.client.raw_engine import OK, Peer, call, post, raw_engine, read_all, replica_at, saying


async def test_calls_in_a_row_share_a_connection(client: EngineClient) -> None:
    async with raw_engine(saying(OK)) as engine:
        for _ in range(20):
            await call(client, engine.replica)
        assert len(engine.peers) == 1


async def test_calls_at_once_do_not(client: EngineClient) -> None:
    async with raw_engine(saying(OK)) as engine:
        await asyncio.gather(*(call(client, engine.replica) for _ in range(20)))
        assert len(engine.peers) == 20
        await asyncio.gather(*(call(client, engine.replica) for _ in range(20)))
        assert len(engine.peers) == 20
        assert client.open_connections == 20


async def test_a_connection_that_the_engine_closed_is_not_handed_out(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        await asyncio.sleep(0.01)
        peer.finish()

    async with raw_engine(serve) as engine:
        await call(client, engine.replica)
        await asyncio.sleep(0.05)
        assert client.open_connections == 0
        assert await call(client, engine.replica) == (200, b"ok")


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nconnection: close\r\n", b"HTTP/1.0 200 OK\r\n"])
async def test_a_connection_whose_end_was_announced_is_not_kept(client: EngineClient, head: bytes) -> None:
    answer = head + b"content-length: 2\r\n\r\nok"
    async with raw_engine(saying(answer)) as engine:
        for _ in range(2):
            assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 2


async def test_an_answer_that_was_not_read_to_its_end_is_not_kept_unless_it_all_came(client: EngineClient) -> None:
    async with raw_engine(saying(OK)) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
        assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 1


async def test_bytes_of_one_answer_never_reach_the_next(client: EngineClient) -> None:
    number = 0

    async def serve(peer: Peer) -> None:
        nonlocal number
        while True:
            await peer.request()
            number += 1
            peer.say(b"HTTP/1.1 200 OK\r\nx-n: %d\r\ncontent-length: 4\r\n\r\n%04d" % (number, number))

    async with raw_engine(serve) as engine:
        for turn in range(1, 21):
            with post(client, engine.replica) as answer:
                await answer.start()
                assert answer.headers[b"x-n"] == b"%d" % turn
                if turn % 2:
                    assert await read_all(answer) == b"%04d" % turn


async def test_only_so_many_are_kept(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_IDLE_PER_REPLICA", 3)
    async with raw_engine(saying(OK)) as engine:
        await asyncio.gather(*(call(client, engine.replica) for _ in range(10)))
        await asyncio.sleep(0.01)
        assert client.open_connections == 3


async def test_a_replica_that_moved_is_dialled_at_its_new_place(client: EngineClient) -> None:
    async with raw_engine(saying(OK)) as old, raw_engine(saying(OK)) as new:
        await call(client, old.replica)
        await call(client, replica_at(old.replica.url))
        assert len(old.peers) == 1, "the same replica, read again"
        await call(client, new.replica)
        await asyncio.sleep(0.01)
        assert (len(new.peers), client.open_connections) == (1, 1)


async def test_whatever_happens_to_many_calls_nothing_leaks() -> None:
    client = EngineClient()
    dice = random.Random(7)
    before = _open_files()
    async with raw_engine(_moody) as engine:

        async def one() -> None:
            with contextlib.suppress(EngineFault, Aborted, TimeoutError):
                async with asyncio.timeout(dice.choice((0.0, 0.001, 0.004, 0.02, 1.0))):
                    with post(client, engine.replica) as answer:
                        if dice.random() < 0.3:
                            asyncio.get_running_loop().call_later(dice.random() * 0.01, answer.abort)
                        await answer.start()
                        while await answer.read() and dice.random() < 0.8:
                            pass

        for _ in range(15):
            await asyncio.gather(*(one() for _ in range(20)))
        await client.close()
        assert client.open_connections == 0
        for _ in range(100):
            await asyncio.sleep(0.01)
            if all(peer.writer.transport.is_closing() for peer in engine.peers):
                break
        else:
            pytest.fail("the engine still has a connection of ours")
    await asyncio.sleep(0.01)
    assert _open_files() <= before + 1


async def test_closing_cuts_running_calls(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with raw_engine(serve) as engine:
        running = asyncio.create_task(call(client, engine.replica))
        await asyncio.sleep(0.02)
        await client.close()
        with pytest.raises(Aborted):
            await running


async def test_closing_ends_a_dial_too(client: EngineClient) -> None:
    async with raw_engine(saying(OK)) as engine:
        replica: Replica = engine.replica
        running = asyncio.create_task(call(client, replica))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises((Aborted, EngineUnreachable)):
            await running


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (a path's own iterator holds a descriptor open)


async def _moody(peer: Peer) -> None:
    dice = random.Random(peer.writer.get_extra_info("peername")[1])
    while True:
        await peer.request()
        mood = dice.randrange(6)
        if mood == 0:
            peer.reset()
            return
        if mood == 1:
            await asyncio.sleep(0.02)
        if mood == 2:
            peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
            await asyncio.sleep(0.005)
            peer.finish()
            return
        if mood == 3:
            peer.say(b"nonsense\r\n\r\n")
        peer.say(OK)
