"""The benchmark's engine: answers at once from memory, and streams 100 chunks at 20 ms; so cheap that it never sets the pace."""

import argparse
import asyncio
import json
from typing import cast

import httptools
import uvloop

CHUNKS = 100
PACE_SECONDS = 0.02
_MODEL = "bench"


class BenchProtocol(asyncio.Protocol):
    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body = b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._body and json.loads(self._body).get("stream"):
            self._transport.write(STREAM_HEAD)
            self._loop = asyncio.get_running_loop()
            self._left, self._next = CHUNKS, self._loop.time()
            self._chunk()
        else:
            self._transport.write(WHOLE)

    def _chunk(self) -> None:
        if not self._left:
            self._transport.write(STREAM_TAIL)
            return
        self._left -= 1
        self._transport.write(CHUNK)
        self._next += PACE_SECONDS
        self._timer = self._loop.call_at(self._next, self._chunk)


def _event(payload: dict[str, object]) -> bytes:
    data = b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _framed(finish: str | None, delta: dict[str, str]) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    envelope = {"id": "chatcmpl-1234567890abcdef", "object": "chat.completion.chunk", "created": 1796083200, "model": _MODEL}
    return _event({**envelope, "choices": [choice]})


_USAGE = {"prompt_tokens": 60, "total_tokens": 160, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 16}}
_MESSAGE = {"role": "assistant", "content": "all is well " * 24}
_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1234567890abcdef", "object": "chat.completion", "created": 1796083200, "model": _MODEL,
        "choices": [{"index": 0, "message": _MESSAGE, "logprobs": None, "finish_reason": "stop"}],
        "usage": _USAGE,
    },
    separators=(",", ":"),
).encode()  # fmt: skip
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = _framed(None, {"content": " word"})
STREAM_TAIL = (
    _framed("stop", {"content": ""})
    + _event(
        {"id": "chatcmpl-1234567890abcdef", "object": "chat.completion.chunk", "model": _MODEL, "choices": [], "usage": _USAGE}
    )
    + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
)


async def _run(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(BenchProtocol, "127.0.0.1", port, backlog=4096)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(_run(parser.parse_args().port))
