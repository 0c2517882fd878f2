"""The stand-in engine: a real server that answers like vLLM and misbehaves when it is asked to.

`python -m tests.support.engine --port 0` prints the address that it listens on.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import time
from typing import cast

import httptools
import uvloop

from tests.support.engine_answers import CHOICES, Job, error_body
from tests.support.engine_journal import Entry, Journal
from tests.support.engine_messages import COUNTS, MESSAGES
from tests.support.engine_responses import RESPONSES
from tests.support.engine_script import HEADER, Script, parse_script
from tests.support.engine_vectors import RERANKS, SCORES, VECTORS

# As uvicorn under vLLM does.
KEEP_ALIVE_SECONDS = 5.0
CHAT = "/v1/chat/completions"
_FRAME = re.compile(rb".+?(?:\n\n|\Z)", re.DOTALL)
SURFACES = {
    CHAT: CHOICES,
    "/v1/completions": CHOICES,
    "/v1/embeddings": VECTORS,
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": COUNTS,
    "/v1/rerank": RERANKS,
    "/v1/score": SCORES,
    "/v1/responses": RESPONSES,
}


class EngineProtocol(asyncio.Protocol):
    """One connection: one request at a time, noticed as aborted the moment the peer closes."""

    def __init__(self, journal: Journal, model: str, keep_alive_seconds: float) -> None:
        self._journal, self._model, self._keep_alive_seconds = journal, model, keep_alive_seconds
        self._parser = httptools.HttpRequestParser(self)
        self._task: asyncio.Task[None] | None = None
        self._entry: Entry | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._journal.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._journal.connections -= 1
        if self._entry is not None:
            self._journal.aborted(self._entry)
        if self._task is not None:
            self._task.cancel()
        self._stop_idling()

    def data_received(self, data: bytes) -> None:
        self._stop_idling()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def on_url(self, url: bytes) -> None:
        self._path += url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._task is not None and not self._task.done():
            self._transport.abort()  # pipelining is not spoken here
            return
        self._task = asyncio.get_running_loop().create_task(self._serve(self._path, self._headers, bytes(self._body)))
        self._begin()

    def _begin(self) -> None:
        self._path = ""
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()

    async def _serve(self, path: str, headers: dict[bytes, bytes], body: bytes) -> None:
        if path in SURFACES:
            await self._complete(path, headers, body)
        else:
            status, answer, kind = self._page(path)
            self._send(_head(status, kind, len(answer)) + answer)
        self._idle = asyncio.get_running_loop().call_later(self._keep_alive_seconds, self._transport.close)

    def _page(self, path: str) -> tuple[int, bytes, str]:
        if path == "/health":
            return 200, b"", "text/plain"
        if path == "/v1/models":
            model = {"id": self._model, "object": "model", "created": 0, "owned_by": "stand-in", "max_model_len": 32768}
            return 200, json.dumps({"object": "list", "data": [model]}).encode(), "application/json"
        if path == "/journal":
            return 200, json.dumps(self._journal.as_json()).encode(), "application/json"
        if path == "/journal/reset":
            self._journal.reset()
            return 200, b"{}", "application/json"
        if path == "/metrics":
            running = self._journal.as_json()["running"]
            text = f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n"
            return 200, text.encode(), "text/plain"
        return 404, error_body(404, "Not Found"), "application/json"

    async def _complete(self, path: str, headers: dict[bytes, bytes], body: bytes) -> None:
        payload = json.loads(body)
        shown = payload if len(body) < 65_536 else {"bytes": len(body)}
        names = {name.decode(): value.decode("latin-1") for name, value in headers.items()}
        entry = self._entry = self._journal.received(path, names, shown)
        try:
            script = parse_script(headers.get(HEADER), payload)
        except (ValueError, TypeError) as error:
            script = Script(status=418, text=str(error))
        job = Job(f"chatcmpl-{entry.number}", path == CHAT, payload, script, SURFACES[path])
        if script.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(script.delay_ms / 1000)
        if script.garbage:
            self._send(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            self._over(close=True)
        elif script.status != 200:
            await self._fail(job)
        elif payload.get("stream"):
            await self._stream(job)
        else:
            await self._answer(job)

    async def _fail(self, job: Job) -> None:
        script = job.script
        body = error_body(script.status, script.text if script.status == 418 else "as the script says")
        extra = "" if script.retry_after is None else f"retry-after: {script.retry_after}\r\n"
        await self._emit(script, _head(script.status, "application/json", len(body), extra) + body)
        self._over()

    async def _answer(self, job: Job) -> None:
        script = job.script
        await asyncio.sleep(script.pace_ms * job.count / 1000)
        body = job.surface.whole(job) if script.says is None else script.says.encode()
        length = None if script.without_length else len(body)
        head = _head(200, "application/json", length, _closing(script))
        if script.exit_after is not None:
            os._exit(1)
        if script.die_after is not None:
            await self._emit(script, head + body[: len(body) // 2])
            await self._die()
        await self._emit(script, head + body)
        self._over(close=script.close_keepalive or script.announce_close or script.without_length)

    async def _stream(self, job: Job) -> None:
        script = job.script
        chunked = not script.without_length
        framing = "transfer-encoding: chunked\r\n" if chunked else ""
        await self._emit(script, _head(200, "text/event-stream; charset=utf-8", None, framing + _closing(script)))
        assert self._entry is not None
        said = None if script.says is None else [(frame, True) for frame in _FRAME.findall(script.says.encode())]
        for event, is_output in job.surface.events(job) if said is None else said:
            if is_output:
                await self._before_output(script, self._entry.chunks)
                self._entry.chunks += 1
            await self._emit(script, b"%x\r\n%b\r\n" % (len(event), event) if chunked else event)
        if chunked:
            await self._emit(script, b"0\r\n\r\n")
        self._over(close=script.close_keepalive or script.announce_close or script.without_length)

    async def _before_output(self, script: Script, sent: int) -> None:
        if script.pace_ms:
            await asyncio.sleep(script.pace_ms / 1000)
        if script.hang_after == sent:
            await asyncio.Event().wait()
        if script.exit_after == sent:
            os._exit(1)
        if script.die_after == sent:
            await self._die()

    async def _die(self) -> None:
        await asyncio.sleep(0.02)  # what was sent has left
        self._over()
        self._transport.abort()
        await asyncio.Event().wait()

    async def _emit(self, script: Script, data: bytes) -> None:
        if not script.split:
            self._send(data)
            return
        for position in range(len(data)):
            self._send(data[position : position + 1])
            await asyncio.sleep(0)

    def _send(self, data: bytes) -> None:
        if self._entry is not None and self._entry.first_byte_ns is None:
            self._entry.first_byte_ns = time.monotonic_ns()
        self._transport.write(data)

    def _over(self, *, close: bool = False) -> None:
        assert self._entry is not None
        self._journal.finished(self._entry)
        self._entry = None
        if close:
            self._transport.close()

    def _stop_idling(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _closing(script: Script) -> str:
    return "connection: close\r\n" if script.announce_close or script.without_length else ""


def _head(status: int, kind: str, length: int | None, extra: str = "") -> bytes:
    size = "" if length is None else f"content-length: {length}\r\n"
    return f"HTTP/1.1 {status} Stand-In\r\nserver: stand-in\r\ncontent-type: {kind}\r\n{size}{extra}\r\n".encode()


async def _run(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    journal = Journal()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await loop.create_server(
        lambda: EngineProtocol(journal, options.model, options.keep_alive), options.host, options.port, backlog=4096
    )
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await stopped.wait()
    server.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", default="stand-in")
    parser.add_argument("--keep-alive", type=float, default=KEEP_ALIVE_SECONDS)
    return parser.parse_args()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_run(_options()))
