"""One streamed call over a socket of its own: when its first content came, and what came of it."""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import cast

import httptools

# A chunk may be cut in two anywhere; nothing that is looked for is longer.
TAIL_BYTES = 256
_CONTENT = re.compile(rb'"content": ?"[^"]')
_TOKENS = re.compile(rb'"completion_tokens": ?(\d+)')
_ERROR = re.compile(rb'data: ?\{"error"')
_CODE = re.compile(rb'"code": ?"?(\w+)')


@dataclass(slots=True)
class Answer:
    """Seconds are since the request was sent, None for what never came. `status` 0: the connection broke before there was one."""

    class_: str
    at: float
    late_seconds: float = 0.0  # sent so much after its time: the client's own fault
    status: int = 0
    ttft: float | None = None
    seconds: float | None = None
    tokens: int = 0
    is_whole: bool = False
    said_error: bool = False
    code: str = ""  # of an error, where one was said

    @property
    def reason(self) -> str:
        """Of one that was not served, for who looks for the fault."""
        return f"{self.outcome}: {self.status} {self.code}".rstrip()

    @property
    def outcome(self) -> str:
        """served; refused: a 503, or an error in place of output in a stream; failed; cut: not over when we stopped."""
        if self.is_whole:
            return "served"
        if self.seconds is None:
            return "cut"
        return "refused" if self.status == 503 or (self.said_error and self.ttft is None) else "failed"


class Stream(asyncio.Protocol):
    """Its cost is a few searches a chunk: it shares two cores with what is measured."""

    def __init__(self, request: bytes, answer: Answer) -> None:
        self._request, self._answer = request, answer
        self._parser = httptools.HttpResponseParser(self)
        self._tail = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_headers_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        seen, answer = self._tail + body, self._answer
        if answer.ttft is None and _CONTENT.search(seen):
            answer.ttft = time.perf_counter() - self._sent
        if found := _TOKENS.search(seen):
            answer.tokens = int(found[1])
        if _ERROR.search(seen):
            answer.said_error = True
        if (answer.said_error or answer.status != 200) and (found := _CODE.search(seen)):
            answer.code = found[1].decode()
        if b"data: [DONE]" in seen:
            answer.is_whole = answer.status == 200 and not answer.said_error and answer.tokens > 0
        self._tail = seen[-TAIL_BYTES:]

    def on_message_complete(self) -> None:
        self._answer.seconds = time.perf_counter() - self._sent
        self._end()
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer.seconds is None and not self.done.done():
            self._answer.seconds = time.perf_counter() - self._sent
        self._end()

    def leave(self) -> None:
        """Hangs up; the answer stays as it is."""
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def call(port: int, request: bytes, answer: Answer) -> None:
    """Fills in `answer`; hangs up when it is cancelled."""
    _, stream = await asyncio.get_running_loop().create_connection(lambda: Stream(request, answer), "127.0.0.1", port)
    try:
        await stream.done
    finally:
        if answer.seconds is None:
            stream.leave()
