"""Large bodies of one account: a few on their way at once, and of the time that everybody waits while they are read a share."""

import asyncio
import time
from collections.abc import Mapping
from typing import Self
from weakref import WeakValueDictionary

# A body that is said to be no larger is read without a turn; hardly any prompt of a hundred thousand tokens is.
SMALL_BYTES = 512 * 1024
# Of one account: what they bring lies in memory before any limit of its plan is checked.
AT_ONCE_PER_ACCOUNT = 8
# JSON made to be dear holds everybody up for tenths of a second. A turn that took longer than this rests so many times as long:
# with all of its turns one account has a quarter of our time.
CHEAP_SECONDS = 0.005
RESTS_TIMES = 31


class Turn:
    """`with turn:` around the reading of a body. `arrived` says that it is here, `over` that it is understood: from then on the
    plan's own limits hold. Nothing is awaited."""

    __slots__ = ("_since", "_turns")

    def __init__(self, turns: asyncio.Semaphore | None) -> None:
        self._turns, self._since = turns, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over()

    def arrived(self) -> None:
        if self._turns is not None:
            self._since = time.monotonic()

    def over(self) -> None:
        turns, self._turns = self._turns, None
        if turns is None:
            return
        took = time.monotonic() - self._since if self._since else 0.0
        if took > CHEAP_SECONDS:
            asyncio.get_running_loop().call_later(RESTS_TIMES * took, turns.release)
        else:
            turns.release()


NO_TURN = Turn(None)


class Intake:
    """One gateway's. An account's bodies wait for each other; those of others don't."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def turn(self, account: str) -> Turn:
        """Enter it before anything else is awaited. Until then no more of the body is read than what the socket brought."""
        turns = self._turns.setdefault(account, asyncio.Semaphore(AT_ONCE_PER_ACCOUNT))
        await turns.acquire()
        return Turn(turns)


def is_small(headers: Mapping[bytes, bytes]) -> bool:
    """By what is said of it: one without a length, or compressed, may become anything."""
    length = headers.get(b"content-length")
    return length is not None and int(length) <= SMALL_BYTES and b"content-encoding" not in headers
