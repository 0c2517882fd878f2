"""One call's slot: asked for, waited for, held, and given back by leaving its `with` block."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from backends.pool import Pool
from backends.releasing import Releaser

# A wake-up that got lost is found with the next question.
POLL_SECONDS = 1.0
# A waiter that could not ask so many times in a row gives up; one lost answer is no reason to lose its place.
UNANSWERED_MAX = 3
# Beside admit, a pool that has just said no is not asked again for so long.
REFUSAL_HOLDS_SECONDS = 0.05

Preference = Sequence[tuple[str, int]]
"""Replicas with their caps (calls at once), best first."""
Prefer = Preference | Callable[[], Preference]
"""A preference, or how to find the present one: replicas come and go while a call waits."""


class PoolFull(Exception):
    """So many wait already that this call may not."""

    def __init__(self, depth: int) -> None:
        super().__init__(f"{depth} calls wait already")
        self.depth = depth


class WaitedTooLong(Exception):
    """No slot became free in the time this call may wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no slot in {seconds:g} s")
        self.seconds = seconds


class QueueUnavailable(Exception):
    """Valkey could not be asked; whether it acted is unknown, so leaving the slot gives back what it may hold."""


class Desk(Protocol):
    """What a slot needs of the queue."""

    unreachable: type[Exception]
    counts: Counter[str]
    releaser: Releaser

    def acquire(self, pool: Pool, request: str, asked: list[str | int]) -> asyncio.Future[Any]: ...
    def lease(self, pool: Pool) -> None: ...
    def await_wakes(self, pool: Pool) -> None: ...


class Slot:
    """`replica` is where the call may run, None until a slot is held.

    A second attempt on another replica is a new slot with an id of its own (`<request>/2`), after this one was left.
    """

    def __init__(self, desk: Desk, pool: Pool, request_id: str, class_: str) -> None:
        self.replica: str | None = None
        self._desk, self._pool = desk, pool
        self._request, self._class = request_id, class_
        self._arrival = 0  # server ms; sent along, so that a place in the line survives Valkey's loss
        self._waits = self._left = False
        self._unanswered = 0
        self._woken: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._left:
            return
        self._left = True
        self._pool.left(self._request)
        if self.replica is not None or self._waits or self._unanswered:
            self._desk.releaser.release(self._pool.name, self._request, unsure=self._unanswered > 0)

    def try_now(self, preference: Prefer) -> asyncio.Future[str | None]:
        """A slot if one is free and nobody is ahead; never waits in line. To be gathered beside admit.

        Raises `QueueUnavailable`.
        """
        pool, loop = self._pool, asyncio.get_running_loop()
        if pool.waiting or (pool.refused_until and loop.time() < pool.refused_until):
            skipped: asyncio.Future[str | None] = loop.create_future()
            skipped.set_result(None)
            return skipped
        return self._ask(preference, may_wait=False, depth_max=0)

    async def take(self, preference: Prefer, wait_seconds: float, depth_max: int) -> str:
        """The replica, after a wait of at most `wait_seconds` behind at most `depth_max` others.

        Raises `PoolFull`, `WaitedTooLong`, `QueueUnavailable`.
        """
        deadline = asyncio.get_running_loop().time() + wait_seconds
        failures = 0
        self._pool.waiting[self._request] = self
        while True:
            self._woken = asyncio.get_running_loop().create_future()
            try:
                replica = await self._ask(preference, may_wait=True, depth_max=depth_max)
                failures = 0
            except QueueUnavailable:
                failures += 1
                if not self._waits or failures == UNANSWERED_MAX:
                    raise
                replica = None
            if replica is not None:
                self._pool.waiting.pop(self._request, None)
                return replica
            await self._wait(deadline, wait_seconds)

    def wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def _wait(self, deadline: float, wait_seconds: float) -> None:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise WaitedTooLong(wait_seconds)
        self._desk.await_wakes(self._pool)
        assert self._woken is not None
        await asyncio.wait([self._woken], timeout=min(POLL_SECONDS, left))

    def _ask(self, preference: Prefer, *, may_wait: bool, depth_max: int) -> asyncio.Future[str | None]:
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        if self.replica is not None:
            answer.set_result(self.replica)
            return answer
        best = preference() if callable(preference) else preference
        load = self._pool.load
        asked: list[str | int] = [int(may_wait), depth_max, self._arrival, self._class]
        for replica, cap in best:
            asked += (replica, cap, load[replica])
        self._send(asked, answer, may_lease=True)
        return answer

    def _send(self, asked: list[str | int], answer: asyncio.Future[str | None], *, may_lease: bool) -> None:
        self._unanswered += 1
        sent = self._desk.acquire(self._pool, self._request, asked)
        sent.add_done_callback(lambda reply: self._replied(reply, asked, answer, may_lease))

    def _replied(
        self, reply: asyncio.Future[Any], asked: list[str | int], answer: asyncio.Future[str | None], may_lease: bool
    ) -> None:
        if reply.cancelled() or reply.exception() is not None:
            # The count of unanswered questions stays up: this one may have been understood. Unless it was never sent.
            if not reply.cancelled() and getattr(reply.exception(), "maybe_sent", True) is False:
                self._unanswered -= 1
            self._fail(answer, None if reply.cancelled() else reply.exception())
            return
        self._unanswered -= 1
        if self._left:
            return
        kind, *facts = [word.decode() if isinstance(word, bytes) else word for word in reply.result()]
        if kind == "lease" and may_lease:
            self._desk.lease(self._pool)
            self._send(asked, answer, may_lease=False)
        elif kind in ("lease", "gone"):
            self._fail(answer, None)
        elif kind == "full":
            _give(answer, PoolFull(int(facts[0])))
            self._desk.counts["refused"] += 1
        else:
            _give(answer, self._noted(kind, facts))

    def _noted(self, kind: str, facts: list[Any]) -> str | None:
        if kind == "held":
            self.replica = str(facts[0])
            self._waits = False
            self._pool.runs(self._request, self.replica)
            self._desk.counts["granted"] += 1
        elif kind == "waits":
            self._arrival, self._waits = int(facts[0]), True
        else:
            self._pool.refused_until = asyncio.get_running_loop().time() + REFUSAL_HOLDS_SECONDS
        return self.replica

    def _fail(self, answer: asyncio.Future[str | None], cause: BaseException | None) -> None:
        self._desk.counts["lost"] += 1
        if cause is not None and not isinstance(cause, self._desk.unreachable):
            _give(answer, cause)
            return
        unavailable = QueueUnavailable()
        unavailable.__cause__ = cause
        _give(answer, unavailable)


def _give(answer: asyncio.Future[str | None], outcome: str | BaseException | None) -> None:
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
        answer.exception()  # whoever gathered it may have left meanwhile; that is not worth a warning
    else:
        answer.set_result(outcome)
