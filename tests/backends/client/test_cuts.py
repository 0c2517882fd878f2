"""An engine that dies in the middle: what was whole, what was cut, and whether another replica may be asked."""

import asyncio
from typing import Any

import pytest

from backends.client import EngineBroke, EngineClient, EngineUnreachable
from tests.backends.client.raw_engine import OK, Peer, call, finish, post, raw_engine, replica_at
from tests.backends.client.test_answers import CHUNKED, LENGTH


@pytest.mark.parametrize("way", ["closed", "reset"])
@pytest.mark.parametrize("answer", [LENGTH, CHUNKED], ids=["length", "chunked"])
async def test_an_answer_cut_at_any_byte_is_never_taken_for_a_whole_one(client: EngineClient, answer: bytes, way: str) -> None:
    head_ends = answer.index(b"\r\n\r\n") + 4
    position = 0

    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(answer[:position])
        await asyncio.sleep(0.002)
        if way == "reset":
            peer.reset()
        else:
            peer.finish()

    async with raw_engine(serve) as engine:
        for position in range(len(answer)):
            got = b""
            with pytest.raises((EngineUnreachable, EngineBroke)) as failure, post(client, engine.replica) as opened:  # noqa: PT012  (what was read until then counts)
                await opened.start()
                while True:
                    part = await opened.read()
                    assert part, "the end of an answer that was cut"
                    got += part
            assert b"hello world".startswith(got)
            if position == 0:
                assert isinstance(failure.value, EngineUnreachable)
            else:
                assert isinstance(failure.value, EngineBroke)
                assert failure.value.after == ("head" if position < head_ends else "body"), position
                assert got or position < answer.index(b"hello") + 1, "what came before the cut is read first"
        assert client.open_connections == 0


async def test_an_answer_without_length_that_is_reset_is_broken(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\n\r\nhello")
        await asyncio.sleep(0.01)
        peer.reset()

    async with raw_engine(serve) as engine:
        with pytest.raises(EngineBroke), post(client, engine.replica) as answer:
            await finish(answer)


async def test_nobody_listening_is_unreachable(client: EngineClient) -> None:
    async with raw_engine(_leave) as engine:
        replica = engine.replica
    with pytest.raises(EngineUnreachable, match="took no connection"):
        await call(client, replica)
    with pytest.raises(EngineUnreachable, match="took no connection"):
        await call(client, replica_at("http://no-such-engine.invalid:80"))


async def test_an_engine_that_hangs_up_on_a_new_connection_is_unreachable_and_not_asked_again(client: EngineClient) -> None:
    async with raw_engine(_leave) as engine:
        with pytest.raises(EngineUnreachable):
            await call(client, engine.replica)
        assert len(engine.peers) == 1


async def test_an_engine_that_hangs_up_before_the_request_was_even_sent_is_unreachable(
    client: EngineClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    dial = client.dial

    async def dial_and_dawdle(pool: Any) -> Any:
        connection = await dial(pool)
        await asyncio.sleep(0.05)
        return connection

    monkeypatch.setattr(client, "dial", dial_and_dawdle)
    async with raw_engine(_leave) as engine:
        with pytest.raises(EngineUnreachable):
            await call(client, engine.replica)


async def test_the_keep_alive_race_is_invisible(client: EngineClient) -> None:
    """The engine closes an idle connection in the very moment in which it is used again."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        if len(engine.peers) == 1:
            await peer.reader.readexactly(1)
            peer.reset()
        else:
            await peer.gone()

    async with raw_engine(serve) as engine:
        for _ in range(2):
            assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 2


async def test_a_second_hang_up_is_no_race_any_more(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        if len(engine.peers) == 1:
            peer.say(OK)
            await peer.reader.readexactly(1)
        peer.reset()

    async with raw_engine(serve) as engine:
        assert await call(client, engine.replica) == (200, b"ok")
        with pytest.raises(EngineUnreachable):
            await call(client, engine.replica)
        assert len(engine.peers) == 2


async def test_a_kept_connection_that_answered_one_byte_is_not_tried_again(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        await peer.request()
        peer.say(b"H")
        await asyncio.sleep(0.01)
        peer.reset()

    async with raw_engine(serve) as engine:
        assert await call(client, engine.replica) == (200, b"ok")
        with pytest.raises(EngineBroke):
            await call(client, engine.replica)
        assert len(engine.peers) == 1


async def _leave(peer: Peer) -> None:
    peer.reset()
