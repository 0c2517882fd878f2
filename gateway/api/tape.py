"""A client's line with a copy of the answer that goes through it, for calls whose answer is kept."""

from collections.abc import Callable

from gateway.line import Headers, Line
from gateway.seal import Recorded


class Tape:
    """Stands in for the line of one call: everything else on the path stays as it is, and other calls pay nothing."""

    def __init__(self, line: Line, limit_bytes: int) -> None:
        self._line, self._limit_bytes = line, limit_bytes
        self._status = 0
        self._headers: Headers = ()
        self._body, self._size = bytearray(), 0
        self._is_whole = False

    def recorded(self) -> Recorded | None:
        """None: the answer did not come to its end, or is over the limit."""
        if not self._is_whole or self._size > self._limit_bytes:
            return None
        return Recorded(self._status, list(self._headers), bytes(self._body))

    @property
    def listener(self) -> Callable[[], object] | None:
        return self._line.listener

    @listener.setter
    def listener(self, listener: Callable[[], object] | None) -> None:
        self._line.listener = listener

    def is_gone(self) -> bool:
        return self._line.is_gone()

    @property
    def is_congested(self) -> bool:
        return self._line.is_congested

    async def drained(self) -> None:
        await self._line.drained()

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        self._status, self._headers = status, headers
        self._add(body, last=True)
        self._line.answer(status, headers, body)

    def begin(self, status: int, headers: Headers) -> None:
        self._status, self._headers = status, headers
        self._line.begin(status, headers)

    def write(self, data: bytes, *, last: bool = False) -> None:
        self._add(data, last=last)
        self._line.write(data, last=last)

    def _add(self, data: bytes, *, last: bool) -> None:
        self._is_whole = last
        self._size += len(data)
        if self._size <= self._limit_bytes:
            self._body += data
        else:
            self._body.clear()
