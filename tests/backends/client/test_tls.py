"""Engines behind TLS, whose certificate must be one that the fleet file trusts."""

import asyncio
import ssl
import time
from pathlib import Path

import pytest

from backends.client import Aborted, EngineBroke, EngineClient, EngineUnreachable
from tests.backends.client.raw_engine import OK, Peer, call, finish, post, raw_engine, replica_at, saying

HERE = Path(__file__).parent
# Self-signed for 127.0.0.1, good until 2126, trusted by nothing but these tests.
CERTIFICATE = str(HERE / "engine.crt")


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, HERE / "engine.key")
    return context


async def test_calls_go_through_it_and_share_a_connection(client: EngineClient, tls: ssl.SSLContext) -> None:
    async with raw_engine(saying(OK), tls=tls, ca_file=CERTIFICATE) as engine:
        for _ in range(3):
            assert await call(client, engine.replica) == (200, b"ok")
        assert len(engine.peers) == 1


async def test_a_certificate_that_nobody_vouches_for_is_refused(client: EngineClient, tls: ssl.SSLContext) -> None:
    async with raw_engine(saying(OK), tls=tls) as engine:
        with pytest.raises(EngineUnreachable, match="certificate"):
            await call(client, engine.replica)
        assert client.open_connections == 0


async def test_a_certificate_of_another_host_is_refused(client: EngineClient, tls: ssl.SSLContext) -> None:
    async with raw_engine(saying(OK), tls=tls) as engine:
        elsewhere = replica_at(f"https://127.0.0.2:{engine.replica.port}", ca_file=CERTIFICATE)
        with pytest.raises(EngineUnreachable):
            await call(client, elsewhere)


async def test_an_engine_that_does_not_speak_tls_is_unreachable(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        await peer.reader.read(10)
        peer.say(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await peer.gone()

    async with raw_engine(serve) as engine:
        replica = replica_at(f"https://127.0.0.1:{engine.replica.port}", ca_file=CERTIFICATE)
        with pytest.raises(EngineUnreachable):
            await call(client, replica)
        assert client.open_connections == 0


async def test_an_abort_in_the_handshake_closes_the_socket_at_once(client: EngineClient) -> None:
    async def serve(peer: Peer) -> None:
        left_at.set_result(await peer.gone())

    left_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    async with raw_engine(serve) as engine:
        replica = replica_at(f"https://127.0.0.1:{engine.replica.port}", ca_file=CERTIFICATE)
        answer = post(client, replica)
        starting = asyncio.create_task(answer.start())
        await asyncio.sleep(0.05)
        began = time.monotonic()
        answer.abort()
        with pytest.raises(Aborted):
            await starting
        assert await left_at - began < 0.05
        assert client.open_connections == 0


async def test_an_abort_in_a_stream_closes_the_socket_at_once(client: EngineClient, tls: ssl.SSLContext) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
        left_at.set_result(await peer.gone())

    left_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    async with raw_engine(serve, tls=tls, ca_file=CERTIFICATE) as engine:
        with post(client, engine.replica) as answer:
            await answer.start()
            assert await answer.read() == b"ok"
        began = time.monotonic()
        assert await left_at - began < 0.05


async def test_a_cut_is_a_cut(client: EngineClient, tls: ssl.SSLContext) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
        await asyncio.sleep(0.01)
        peer.writer.transport.abort()

    async with raw_engine(serve, tls=tls, ca_file=CERTIFICATE) as engine:
        with pytest.raises(EngineBroke), post(client, engine.replica) as answer:
            await finish(answer)
