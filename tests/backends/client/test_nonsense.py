"""Answers that are not to be trusted, and bytes that nobody asked for."""

import asyncio

import pytest

from backends.client import EngineClient, EngineSpokeNonsense
from tests.backends.client.raw_engine import OK, Peer, call, post, raw_engine, read_all, saying

HEAD = b"HTTP/1.1 200 OK\r\n"
NONSENSE = {
    "no HTTP at all": b"\x16\x03\x01\x00\x05hello\r\n\r\n",
    "both lengths": HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "both lengths, the other way": HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "two lengths": HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok",
    "the same length twice": HEAD + b"content-length: 2\r\ncontent-length: 2\r\n\r\nok",
    "a list of lengths": HEAD + b"content-length: 2, 2\r\n\r\nok",
    "a negative length": HEAD + b"content-length: -2\r\n\r\nok",
    "a space before the colon": HEAD + b"content-length : 2\r\n\r\nok",
    "a folded header": HEAD + b"a: b\r\n c\r\ncontent-length: 2\r\n\r\nok",
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
    "another coding": HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "chunked not last": HEAD + b"transfer-encoding: chunked, identity\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "a chunk without its end": HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nokX\r\n0\r\n\r\n",
    "a chunk size that overflows": HEAD + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "a chunk size that is none": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    "a zero byte in a header": HEAD + b"a: b\0c\r\ncontent-length: 2\r\n\r\nok",
    "an upgrade": b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nabc",
    "a version that is none": b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "a status that is none": b"HTTP/1.1 20 OK\r\ncontent-length: 2\r\n\r\nok",
    "a header of 70 kB beside its body": HEAD + b"a: " + b"x" * 70_000 + b"\r\ncontent-length: 2\r\n\r\nok",
    "3,000 headers": HEAD + b"a: b\r\n" * 3_000 + b"content-length: 2\r\n\r\nok",
    "trailers of 70 kB": HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\na: " + b"x" * 70_000 + b"\r\n\r\n",
    "interim answers without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 4_000,
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_nonsense_is_called_nonsense_and_its_connection_closed(client: EngineClient, name: str) -> None:
    async with raw_engine(saying(NONSENSE[name])) as engine:
        with pytest.raises(EngineSpokeNonsense):
            await call(client, engine.replica)
        await asyncio.sleep(0.01)
        assert client.open_connections == 0


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (HEAD + b"a: ", b"x" * 4096),
        (HEAD, b"a: b\r\n" * 100),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n5;", b"x" * 4096),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", b"a: b\r\n" * 100),
    ],
    ids=["one header", "many headers", "chunk extension", "trailers"],
)
async def test_a_head_without_end_is_not_listened_to_for_long(client: EngineClient, begin: bytes, again: bytes) -> None:
    said = 0

    async def serve(peer: Peer) -> None:
        nonlocal said
        await peer.request()
        peer.say(begin)
        while said < 10_000_000:
            peer.say(again)
            await peer.writer.drain()
            await asyncio.sleep(0)
            said += len(again)

    async with raw_engine(serve) as engine:
        with pytest.raises(EngineSpokeNonsense):
            await call(client, engine.replica)
        await asyncio.sleep(0.01)
        assert said < 1_000_000


@pytest.mark.parametrize("extra", [b"X", OK, b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_bytes_after_a_whole_answer_spoil_the_connection_but_not_the_answer(client: EngineClient, extra: bytes) -> None:
    async with raw_engine(saying(OK + extra)) as engine:
        for _ in range(3):
            assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 3


async def test_bytes_that_come_late_after_a_whole_answer_spoil_it_too(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        await asyncio.sleep(0.02)
        peer.say(OK)
        await peer.gone()

    async with raw_engine(serve) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            assert await read_all(answer) == b"ok"
            await asyncio.sleep(0.05)
        assert client.open_connections == 0
        assert await call(client, engine.replica) == (200, b"ok")


async def test_an_idle_connection_on_which_something_arrives_is_closed(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(OK)
        await asyncio.sleep(0.02)
        peer.say(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await peer.gone()

    async with raw_engine(serve) as engine:
        assert await call(client, engine.replica) == (200, b"ok")
        await asyncio.sleep(0.05)
        assert client.open_connections == 0
        assert await call(client, engine.replica) == (200, b"ok")
