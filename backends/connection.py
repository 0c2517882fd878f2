"""One HTTP/1.1 connection to an engine: a request out, one answer in, and cut the moment that is asked for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import httptools

from backends.failures import EngineBroke, EngineFault, EngineHungUp, EngineSpokeNonsense, EngineTimedOut

# An answer that nobody reads is held back in the kernel beyond this; one read of the socket may come on top.
BUFFER_LIMIT_BYTES = 256 * 1024
# Up to here a body is copied behind its head, so that both leave in one packet.
ONE_WRITE_BYTES = 64 * 1024
# What a header costs beside its own bytes, so that very many very short ones are bounded too.
HEADER_COST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an engine may be silent, in seconds, and how much head it may send, in bytes."""

    connect: float = 2.0
    # An answer that is not streamed sends nothing until all its tokens are made; OpenAI's SDK waits as long.
    first_byte: float = 600.0
    between_bytes: float = 120.0
    # uvicorn, and so vLLM, closes an idle connection after 5 s; a second less leaves no race to lose.
    idle: float = 4.0
    max_head_bytes: int = 64 * 1024


class Connection(asyncio.Protocol):
    """At most one exchange at a time: `send`, then `wait` and `take` until `is_complete`. `cut` ends it at any point."""

    status: int
    headers: dict[bytes, bytes]
    failure: Exception | None
    has_head: bool
    is_complete: bool
    received: bool

    _chunks: list[bytes]
    _interim: bool
    _keep_alive: bool
    _delimited_by_close: bool
    _paused: bool
    _buffered: int
    _overhead: int
    _head_bytes: int

    def __init__(
        self, loop: asyncio.AbstractEventLoop, where: str, patience: Patience, on_lost: Callable[["Connection"], None]
    ) -> None:
        self._loop, self.where, self._patience, self._on_lost = loop, where, patience, on_lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.is_cut = self._exchanging = self._excess = False
        self._since = loop.time()
        self._begin()

    # What its owner does with it.

    def send(self, head: bytes, body: bytes) -> None:
        """Begins an exchange."""
        self._begin()
        self._exchanging = True
        self._since = self._loop.time()
        if self._transport is None or self._transport.is_closing():
            self.failure = self._cut_short()  # the engine closed it as soon as it had taken it
        elif len(body) <= ONE_WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    async def wait(self) -> None:
        """Until something changed: the head, bytes, the end or a failure."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    @property
    def has_bytes(self) -> bool:
        return bool(self._chunks)

    def take(self) -> bytes:
        """Everything that arrived since the last time; lets the engine go on if it was held back."""
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._buffered = 0
        if self._paused:
            self._paused = False
            self._since = self._loop.time()
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    @property
    def may_rest(self) -> bool:
        """The answer is whole and nothing is left over on either side, so the connection can carry another one."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        return self.is_complete and self._keep_alive and not self._excess and not self._paused and self.failure is None

    @property
    def is_rested(self) -> bool:
        """Idle, open, and not for so long that the engine may be about to close it."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._loop.time() - self._since < self._patience.idle

    @property
    def is_unanswered(self) -> bool:
        """A request was sent, and not one byte has come back."""
        return self._exchanging and not self.received and self.failure is None

    def rest(self) -> None:
        """Ends a complete exchange; whatever arrives now closes the connection."""
        self._exchanging = False
        self._since = self._loop.time()
        self._begin()

    def cut(self, failure: Exception | None = None) -> None:
        """Closes the socket now, unsent bytes and all; the waiting side is woken."""
        if failure is not None and self.failure is None:
            self.failure = failure
        self.is_cut = True
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def check(self, now: float) -> None:
        """Called now and then: gives up on an engine that has been silent too long, and on an idle connection."""
        silent = now - self._since
        if not self._exchanging:
            if silent >= self._patience.idle:
                self.cut()
        elif self.is_complete or self._paused or self.failure is not None:
            return
        elif not self.has_head:
            if silent >= self._patience.first_byte:
                self.cut(EngineTimedOut(self.where, "first_byte", self._patience.first_byte))
        elif silent >= self._patience.between_bytes:
            self.cut(EngineTimedOut(self.where, "between_bytes", self._patience.between_bytes))

    # What the event loop tells it.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._exchanging or self.is_complete:
            self._excess = True
            self.cut()
            return
        self.received = True
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(str(error) or "an upgrade that was not asked for")
        if self._overhead > self._patience.max_head_bytes:
            self._refuse(f"more than {self._patience.max_head_bytes} bytes without any content")
        elif self.has_head and not self._overhead:
            self._since = self._loop.time()
        if self._buffered > BUFFER_LIMIT_BYTES and not self._paused and not self.is_complete and self.failure is None:
            assert self._transport is not None
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        if self.has_head and self._delimited_by_close and self.failure is None:
            self.is_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._exchanging and not self.is_complete and self.failure is None:
            self.failure = self._cut_short()
        self._transport = None
        self._on_lost(self)
        self._wake()

    # What the parser tells it.

    def on_message_begin(self) -> None:
        if self.is_complete:
            self._excess = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes_seen(len(name) + len(value))
        if self.has_head:
            return  # a trailer, or part of what follows the answer: of no use to anyone
        name = name.lower()
        known = self.headers.get(name)
        self.headers[name] = value if known is None else known + b", " + value

    def on_headers_complete(self) -> None:
        if self.is_complete:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self._interim = True
            return
        self.status, self.has_head = status, True
        self._keep_alive = self._parser.should_keep_alive()
        coding = self.headers.get(b"transfer-encoding")
        self._delimited_by_close = coding is None and b"content-length" not in self.headers and status not in (204, 304)
        if coding is not None and coding.lower() != b"chunked":
            self._refuse("a transfer encoding other than chunked")
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            self._refuse("an unknown version of HTTP")

    def on_body(self, data: bytes) -> None:
        if self.is_complete:
            return
        self._overhead = 0
        self._chunks.append(data)
        self._buffered += len(data)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            self.headers = {}
            return
        self.is_complete = True

    # How it keeps count.

    def _begin(self) -> None:
        self.status = 0
        self.headers = {}
        self.failure = None
        self.has_head = self.is_complete = self.received = False
        self._interim = self._keep_alive = self._delimited_by_close = self._paused = False
        self._chunks = []
        self._buffered = self._overhead = self._head_bytes = 0

    def _head_bytes_seen(self, count: int) -> None:
        # Counted apart from `_overhead`, which the first byte of content in the same packet resets.
        self._head_bytes += count + HEADER_COST_BYTES
        if self._head_bytes > self._patience.max_head_bytes:
            self._refuse(f"a head of more than {self._patience.max_head_bytes} bytes")

    def _refuse(self, what: str) -> None:
        if self.is_complete:
            self._excess = True  # the answer is whole: what follows it only spoils the connection
        else:
            self.cut(EngineSpokeNonsense(self.where, what))

    def _cut_short(self) -> EngineFault:
        if not self.received:
            return EngineHungUp(f"{self.where} closed the connection before any answer")
        return EngineBroke(self.where, "body" if self.has_head else "head")

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
