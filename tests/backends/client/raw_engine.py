"""A socket that says exactly what a test wants it to say, and notes when its peers left."""

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from backends.client import Answer, EngineClient
from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Peer:
    """One connection, from the engine's side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> bytes:
        """Head and body; asyncio.IncompleteReadError when the peer has left."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
        return head + await self.reader.readexactly(length)

    async def gone(self) -> float:
        """When the peer closed (time.monotonic)."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        return time.monotonic()

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    def finish(self) -> None:
        """FIN after what was said."""
        self.writer.close()

    def reset(self) -> None:
        """RST, at once."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass
class RawEngine:
    replica: Replica
    peers: list[Peer] = field(default_factory=list)


def replica_at(url: str, *, api_key: str | None = None, ca_file: str | None = None) -> Replica:
    engine = ENGINE_KINDS["vllm"]
    return Replica.at(url, name="raw", model="m", engine=engine, slots=8, api_key=api_key, ca_file=ca_file)


@contextlib.asynccontextmanager
async def raw_engine(
    serve: Callable[[Peer], Awaitable[None]], *, tls: ssl.SSLContext | None = None, ca_file: str | None = None
) -> AsyncIterator[RawEngine]:
    """Runs `serve` for each connection; it ends when its peer leaves."""
    running: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        peer = Peer(reader, writer)
        engine.peers.append(peer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await serve(peer)
        finally:
            running.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    engine = RawEngine(replica_at(f"{'https' if tls else 'http'}://127.0.0.1:{port}", ca_file=ca_file))
    try:
        yield engine
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.sleep(0)


def saying(answer: bytes) -> Callable[[Peer], Awaitable[None]]:
    """Answers every request with the same bytes."""

    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.say(answer)

    return serve


def post(client: EngineClient, replica: Replica, body: bytes = b"{}") -> Answer:
    return client.open(replica, "/v1/x", body, [(b"content-type", b"application/json")])


async def read_all(answer: Answer) -> bytes:
    parts = []
    while part := await answer.read():
        parts.append(part)
    return b"".join(parts)


async def finish(answer: Answer) -> bytes:
    await answer.start()
    return await read_all(answer)


async def call(client: EngineClient, replica: Replica) -> tuple[int, bytes]:
    with post(client, replica) as answer:
        body = await finish(answer)
        return answer.status, body
