"""The answering side of one request on uvicorn's protocol: what the paid path sends through, one write a step."""

from collections.abc import Callable, Iterable

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

Headers = Iterable[tuple[bytes, bytes]]
# Where a request's scope has its line.
LINE = "faregate.line"


class Line(RequestResponseCycle):
    """uvicorn's cycle, which pages still use through ASGI, with direct ways to answer.

    `send` costs a coroutine, a dictionary and two regular expressions a header; headers that reach this are all our own.
    """

    listener: Callable[[], object] | None = None  # told when the client hangs up; at most one at a time

    def is_gone(self) -> bool:
        return self.disconnected

    def hang_up(self) -> None:
        """The client closed its connection before its answer was complete."""
        if self.listener is not None:
            self.listener()

    @property
    def is_congested(self) -> bool:
        """The client reads more slowly than we write: wait for `drained` before writing on."""
        return self.flow.write_paused and not self.disconnected

    async def drained(self) -> None:
        await self.flow.drain()

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer, in one write."""
        if self.disconnected:
            return
        self._close_unless_read()
        self._write_head(status, headers, b"content-length: %d\r\n" % len(body), body)
        self._complete()

    def bare(self, status: int, headers: Headers) -> None:
        """An answer without a body or its length: a 204, or one to HEAD."""
        if not self.disconnected:
            self._close_unless_read()
            self._write_head(status, headers, b"", b"")
            self._complete()

    def begin(self, status: int, headers: Headers) -> None:
        """The head of an answer whose length nobody knows yet. HTTP/1.0 knows no chunks: there the closing ends it."""
        if not self.disconnected:
            self._close_unless_read()
            self.chunked_encoding = self.scope["http_version"] != "1.0"
            self._write_head(status, headers, b"transfer-encoding: chunked\r\n" if self.chunked_encoding else b"", b"")

    def write(self, data: bytes, *, last: bool = False) -> None:
        if self.disconnected:
            return
        if self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            self.transport.write(chunk + b"0\r\n\r\n" if last else chunk)
        else:
            self.transport.write(data)
        if last:
            self._complete()

    async def send(self, message: ASGISendEvent) -> None:
        if not self.response_started:
            self._close_unless_read()
        await super().send(message)

    def _close_unless_read(self) -> None:
        """Answered before the body was whole: what comes after it could be taken for another request."""
        self.keep_alive = self.keep_alive and not self.more_body

    def _write_head(self, status: int, headers: Headers, framing: bytes, body: bytes) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [b"%b: %b\r\n" % header for header in (*self.default_headers, *headers)]
        closing = b"" if self.keep_alive else b"connection: close\r\n"
        self.transport.write(b"".join((STATUS_LINE[status], *lines, framing, closing, b"\r\n", body)))

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
