"""An engine that answers with a stored body, in the pieces that a test wants it to leave in."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Replayer:
    """`pieces` are what the next call gets, each in a write of its own; `headers` are lines beside the ones that are needed."""

    port: int = 0
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Sequence[str] = ()
    pause_seconds: float = 0.0  # between two pieces
    pieces: Sequence[bytes] = ()
    asked: list[dict[str, object]] = field(default_factory=list)
    sent_bytes: int = 0  # of all answers, as far as they were taken
    left_ns: int | None = None  # when somebody last left before his answer was whole (CLOCK_MONOTONIC)

    def fleet_entry(self, model: str, kind: str, name: str) -> str:
        return (
            f'[[replica]]\nid = "{name}"\nmodel = "{model}"\nengine = "{kind}"\nurl = "http://127.0.0.1:{self.port}"\nslots = 8\n'
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            if head.startswith("get"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            self.asked.append(json.loads(await reader.readexactly(length)))
            lines = ["HTTP/1.1 200 OK", f"content-type: {self.content_type}", "connection: close", *self.headers]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            for piece in self.pieces:
                writer.write(piece)
                await writer.drain()
                self.sent_bytes += len(piece)
                await asyncio.sleep(self.pause_seconds)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left_ns = time.monotonic_ns()
        finally:
            writer.close()


@contextmanager
def replaying() -> Iterator[Replayer]:
    """In a thread of its own, with a loop of its own."""
    replayer, ready = Replayer(), threading.Event()
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(replayer.serve, "127.0.0.1", 0)
        replayer.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await stopped.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    ready.wait(10)
    try:
        yield replayer
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()
