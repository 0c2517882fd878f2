"""Slots given back without waiting: sent at once, and again until Valkey has said yes."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

RETRY_SECONDS = 0.2
Send = Callable[[str, str, bool, int], asyncio.Future[Any]]
log = logging.getLogger(__name__)


class Releaser:
    """Leaving a slot must not await (an await can be cancelled), so what is given back is kept here until it is acknowledged."""

    def __init__(self, send: Send, unreachable: type[Exception]) -> None:
        self._send = send
        self._unreachable = unreachable
        self._owed: dict[tuple[str, str], tuple[bool, int]] = {}
        self._sent: dict[tuple[str, str], asyncio.Future[Any]] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._settled = asyncio.Event()
        self._settled.set()

    def release(self, pool: str, request: str, *, unsure: bool, worked: int = -1) -> None:
        """`unsure`: an acquire of this request may still be on its way; it must find the door closed. `worked`: tokens, or -1."""
        self._owed[pool, request] = unsure, worked
        self._settled.clear()
        self._attempt((pool, request))

    def owed(self) -> int:
        """How many are not acknowledged yet."""
        return len(self._owed)

    async def flush(self, timeout_seconds: float) -> bool:
        """True when everything was acknowledged in time."""
        try:
            await asyncio.wait_for(self._settled.wait(), timeout_seconds)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()

    def _attempt(self, key: tuple[str, str]) -> None:
        sent = self._sent[key] = self._send(*key, *self._owed[key])
        sent.add_done_callback(lambda answer: self._answered(key, answer))

    def _answered(self, key: tuple[str, str], answer: asyncio.Future[Any]) -> None:
        del self._sent[key]
        failure = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or failure is not None:
            if failure is not None and not isinstance(failure, self._unreachable):
                log.error("a slot could not be released", exc_info=failure)
            self._try_again_soon()
            return
        del self._owed[key]
        if not self._owed:
            self._settled.set()

    def _try_again_soon(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._try_all_again)

    def _try_all_again(self) -> None:
        self._retry = None
        for key in list(self._owed):
            if key not in self._sent:
                self._attempt(key)
