"""The client's side of one call: its headers, its answer in its dialect, and the word that it hung up."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from gateway.api.body import ClientGone
from gateway.api.dialect import Dialect, Reader
from gateway.errors import Refusal
from gateway.line import LINE, Line

Headers = list[tuple[bytes, bytes]]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

NOTHING = nullcontext()
# Proxies must neither buffer nor transform a stream.
STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class Place(Protocol):
    """Where a call stands that waits for a slot."""

    def comment(self) -> bytes: ...
    def headers(self) -> Headers: ...


class Exchange:
    """One request and its answer. `receipt` is put on whatever answer is given; `committed` says its status has left.

    `reader` is that of the stream which is relayed, once there is one.
    """

    __slots__ = (
        "_warm", "address", "committed", "dialect", "headers", "line", "place", "reader", "receipt", "receive", "request_id",
        "scope", "spoke", "started_ns",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, request_id: str, dialect: Dialect) -> None:
        self.scope = scope
        self.receive = receive
        self.request_id = request_id
        self.started_ns = time.monotonic_ns()
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self.address = ""
        self.line: Line = scope[LINE]
        self.dialect = dialect
        self.reader: Reader | None = None
        self.place: Place | None = None
        self.receipt: Headers = [*dialect.identity(request_id.encode())]
        self.committed = self.spoke = False
        self._warm: KeepWarm | None = None

    def elapsed_ms(self) -> int:
        return (time.monotonic_ns() - self.started_ns) // 1_000_000

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """A whole answer. Raises: ClientGone when nobody is there to take it."""
        if self.line.is_gone():
            raise ClientGone
        self.committed = True
        self.line.answer(status, [*headers, *self.receipt], body)

    def refuse(self, refusal: Refusal) -> None:
        """An error: a status while none has left, else a frame in the stream and its end."""
        if self.committed:
            self.put(self.dialect.broken(refusal, self.reader), last=True)
        else:
            self.answer(*self.dialect.refused(refusal, self.request_id.encode()))

    def begin_output(self, data: bytes, *, last: bool = False) -> None:
        """The first bytes of an answer that is streamed. Raises: ClientGone."""
        self.open_stream()
        self.put(data, last=last)

    def open_stream(self) -> None:
        """Status 200 and the stream's headers, once."""
        if not self.committed:
            self.committed = True
            self.line.begin(200, [*STREAM, *self.receipt])

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Waits while the client is slow. Raises: ClientGone."""
        self.put(data, last=last)
        await self.drained()

    async def drained(self) -> None:
        if self.line.is_congested:
            await self.line.drained()

    def put(self, data: bytes, *, last: bool = False) -> None:
        """Without waiting. Raises: ClientGone."""
        if self.line.is_gone():
            raise ClientGone
        self.spoke = True
        if last and self._warm is not None:
            self._warm.stop()
        self.line.write(data, last=last)

    def silence(self) -> bytes:
        """What keeps the line open now; in a dialect that does it with comments, it says where a waiting call stands."""
        if self.reader is not None:
            return self.reader.silence()
        has_comments = self.dialect.silence.startswith(b":")
        return self.place.comment() if self.place is not None and has_comments else self.dialect.silence

    def kept_warm(self, after_seconds: float, *, is_on: bool) -> "AbstractContextManager[object]":
        """While nothing is sent, something keeps the line open; not for answers that are not streams."""
        if not is_on:
            return NOTHING
        self._warm = KeepWarm(self, after_seconds)
        return self._warm

    def watched(self, seconds: float) -> "Watch":
        """For the time that the call waits on others: raises ClientGone or TimeoutError at whatever is awaited inside."""
        return Watch(self, seconds)


class Watch:
    """Turns the client's hang-up and the call's deadline into exceptions, the way asyncio.timeout does: by cancelling the task
    and catching that on the way out."""

    __slots__ = ("_exchange", "_seconds", "_task", "_timed_out", "_timer")

    def __init__(self, exchange: Exchange, seconds: float) -> None:
        self._exchange, self._seconds = exchange, seconds
        self._timed_out = False

    def __enter__(self) -> None:
        if self._exchange.line.is_gone():
            raise ClientGone
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._exchange.line.listener = task.cancel
        self._timer = loop.call_later(self._seconds, self._time_out)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._exchange.line.listener = None
        self._timer.cancel()
        is_ours = self._timed_out or self._exchange.line.is_gone()
        if kind is asyncio.CancelledError and is_ours and self._task.uncancel() == 0:
            raise (TimeoutError if self._timed_out else ClientGone) from None

    def _time_out(self) -> None:
        if not self._exchange.line.is_gone():
            self._timed_out = True
            self._task.cancel()


class KeepWarm:
    """A stream that waits long answers 200 after `after_seconds`, and one that is silent says so now and then, in its dialect's
    way, so that no hop gives up on it. One timer a stream, which looks whether anything was said since it last looked."""

    EVERY_SECONDS = 10.0

    __slots__ = ("_after_seconds", "_exchange", "_timer")

    def __init__(self, exchange: Exchange, after_seconds: float) -> None:
        self._exchange = exchange
        self._after_seconds = after_seconds
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "KeepWarm":
        self._timer = asyncio.get_running_loop().call_later(self._after_seconds, self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        exchange = self._exchange
        if exchange.line.is_gone():
            return
        if not exchange.spoke and not exchange.line.is_congested:
            if exchange.place is not None and not exchange.committed:
                exchange.receipt += exchange.place.headers()
            exchange.open_stream()
            exchange.put(exchange.silence())
        exchange.spoke = False
        self._timer = asyncio.get_running_loop().call_later(self.EVERY_SECONDS, self._look)
