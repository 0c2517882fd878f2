"""The benchmark's client: calls as fast as answers come, or many paced streams, and counts what it got."""

import argparse
import asyncio
import json
import time
from typing import Any, cast

import httptools
import uvloop

from tests.benchmarks.engine import CHUNKS

CONNECTIONS = 32
STREAMS = 256
_WORD = b'" word"'
_STARTS_WITHIN_SECONDS = 0.4


class Caller(asyncio.Protocol):
    """One connection; `ended` is called after every answer, with its seconds."""

    def __init__(self, request: bytes, tally: "Tally") -> None:
        self._request, self._tally = request, tally
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self.done: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def call(self) -> None:
        self._began = time.perf_counter()
        self._tail = b""
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._tally.errors += 1
            self.done.set_result(None)

    def on_body(self, body: bytes) -> None:
        seen = self._tail + body  # a chunk may have been cut in two
        self._tally.chunks += seen.count(_WORD)
        self._tail = seen[1 - len(_WORD) :]

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() != 200:
            self._tally.errors += 1
        self._tally.seconds.append(time.perf_counter() - self._began)
        if self._loop.time() < self._tally.until:
            self.call()
        else:
            self.done.set_result(None)
            self._transport.close()


class Tally:
    def __init__(self, until: float) -> None:
        self.until = until
        self.chunks = self.errors = 0
        self.seconds: list[float] = []

    def as_json(self, elapsed: float) -> dict[str, Any]:
        ordered = sorted(self.seconds) or [0.0]
        return {
            "answers": len(self.seconds), "chunks": self.chunks, "errors": self.errors, "elapsed_seconds": elapsed,
            "p50_ms": ordered[len(ordered) // 2] * 1000, "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        }  # fmt: skip


async def load(port: int, token: str, model: str, *, stream: bool, seconds: float) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    tally = Tally(began if stream else began + seconds)
    count = STREAMS if stream else CONNECTIONS
    callers: list[Caller] = []
    for _ in range(count):
        _, caller = await loop.create_connection(lambda: Caller(_request(token, model, stream=stream), tally), "127.0.0.1", port)
        callers.append(caller)
    for index, caller in enumerate(callers):
        loop.call_later(index * _STARTS_WITHIN_SECONDS / count if stream else 0, caller.call)
    await asyncio.gather(*(caller.done for caller in callers))
    found = tally.as_json(loop.time() - began)
    if stream and tally.chunks != count * CHUNKS:
        found["errors"] += 1
    return found


def _request(token: str, model: str, *, stream: bool) -> bytes:
    """About 600 bytes of JSON, as a chat of a few turns has."""
    text = "how are things at home, and at work? " * 3
    turns = [{"role": "user" if turn % 2 else "system", "content": text} for turn in range(4)]
    payload: dict[str, Any] = {"model": model, "messages": turns, "temperature": 0.2}
    if stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    body = json.dumps(payload).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n".encode()
    return head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    print(
        json.dumps(uvloop.run(load(options.port, options.token, options.model, stream=options.stream, seconds=options.seconds)))
    )
