"""Whole answers, however the network cuts them up."""

import asyncio

import pytest

from backends.client import EngineClient
from backends.fleet import Replica
from tests.backends.client.raw_engine import Peer, call, post, raw_engine, read_all, replica_at, saying

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 11\r\n\r\nhello world"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\nhello \r\n5\r\nworld\r\n0\r\nx-trailer: 1\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\nx-not: mine\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + LENGTH
CLOSING = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello world"
ANSWERS = {"length": LENGTH, "chunked": CHUNKED, "interim": INTERIM, "closing": CLOSING}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_split_at_any_byte_is_the_same_answer(client: EngineClient, name: str) -> None:
    answer = ANSWERS[name]
    position = 0

    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.say(answer[:position])
            await asyncio.sleep(0.001)
            peer.say(answer[position:])
            if name == "closing":
                peer.finish()

    async with raw_engine(serve) as engine:
        for position in range(1, len(answer)):
            assert await call(client, engine.replica) == (200, b"hello world"), position
        assert len(engine.peers) == (1 if name != "closing" else len(answer) - 1)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_that_comes_byte_by_byte_is_the_same_answer(client: EngineClient, name: str) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        for byte in ANSWERS[name]:
            peer.say(bytes((byte,)))
            await asyncio.sleep(0)
        peer.finish()

    async with raw_engine(serve) as engine:
        assert await call(client, engine.replica) == (200, b"hello world")


async def test_names_of_headers_are_lower_case_and_those_of_interim_answers_are_forgotten(client: EngineClient) -> None:
    async with raw_engine(saying(INTERIM)) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            assert answer.headers == {b"content-type": b"text/plain", b"content-length": b"11"}


async def test_a_header_sent_twice_has_both_values(client: EngineClient) -> None:
    async with raw_engine(saying(b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\ncontent-length: 0\r\n\r\n")) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            assert answer.headers[b"a"] == b"1, 2"


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body_ends_at_its_head(client: EngineClient, status: int) -> None:
    async with raw_engine(saying(b"HTTP/1.1 %d X\r\n\r\n" % status)) as engine:
        for _ in range(2):
            assert await call(client, engine.replica) == (status, b"")
        assert len(engine.peers) == 1


async def test_what_arrived_between_two_reads_comes_as_one(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(5):
            await asyncio.sleep(0.005)
            peer.say(b"2\r\nab\r\n")
        peer.say(b"0\r\n\r\n")

    async with raw_engine(serve) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            await asyncio.sleep(0.1)
            assert await answer.read() == b"ab" * 5
            assert await answer.read() == b""
            assert await answer.read() == b""


async def test_an_engine_is_held_back_while_nobody_reads_and_nothing_is_lost(client: EngineClient) -> None:
    size = 64 * 1024 * 1024
    sent = 0

    async def serve(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 65536):
            peer.say(b"x" * 65536)
            await peer.writer.drain()
            sent += 65536
        await peer.gone()

    async with raw_engine(serve) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            await asyncio.sleep(0.2)
            held_at = sent
            assert held_at < size / 2  # what fits into the kernel's buffers, and no more
            await asyncio.sleep(0.1)
            assert sent == held_at
            assert len(await read_all(answer)) == size


async def test_a_large_request_arrives_whole(client: EngineClient) -> None:
    body = bytes(range(256)) * 16384
    got = b""

    async def serve(peer: Peer) -> None:
        nonlocal got
        got = await peer.request()
        peer.say(LENGTH)
        await peer.gone()

    async with raw_engine(serve) as engine:
        with post(client, engine.replica, body) as answer:
            await answer.start()
            await read_all(answer)
    assert got.endswith(b"\r\n\r\n" + body)


async def test_an_answer_before_the_request_was_read_is_taken_and_its_connection_not_kept(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.reader.readexactly(10)
        peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(5)

    async with raw_engine(serve) as engine:
        with post(client, engine.replica, b"x" * 64 * 1024 * 1024) as answer:
            await answer.start()
            assert (answer.status, await read_all(answer)) == (413, b"big")
        await asyncio.sleep(0.01)
        assert client.open_connections == 0


async def test_nothing_goes_out_but_what_was_asked_for(client: EngineClient) -> None:
    seen: list[bytes] = []

    async def serve(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            peer.say(LENGTH)

    async with raw_engine(serve) as engine:
        url = engine.replica.url
        replica = replica_at(f"{url}/base", api_key="secret")
        with client.open(replica, "/v1/x", b"{}", [(b"accept", b"*/*")]) as answer:
            await answer.start()
            await read_all(answer)
        with client.open(engine.replica, "/health", b"", [], method="GET") as answer:
            await answer.start()
            await read_all(answer)
    host = url.removeprefix("http://").encode()
    assert seen == [
        b"POST /base/v1/x HTTP/1.1\r\nhost: %b\r\nauthorization: Bearer secret\r\naccept: */*\r\ncontent-length: 2\r\n\r\n{}"
        % host,
        b"GET /health HTTP/1.1\r\nhost: %b\r\n\r\n" % host,
    ]


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("/v1/x", (b"a", b"b\r\nx: y")),
        ("/v1/x", (b"a", b"b\nx: y")),
        ("/v1/x", (b"a\r\nx", b"y")),
        ("/v1/x\r\nx: y", (b"a", b"b")),
        ("/v1/x", (b"Transfer-Encoding", b"chunked")),
        ("/v1/x", (b"content-length", b"0")),
        ("/v1/x", (b"Host", b"elsewhere")),
    ],
)
async def test_a_request_that_could_smuggle_is_never_made(client: EngineClient, path: str, header: tuple[bytes, bytes]) -> None:
    replica: Replica = replica_at("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"engine|client"):
        client.open(replica, path, b"{}", [header])
