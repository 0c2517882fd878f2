"""One call's slot: asked for, waited for, held, asked back before its first output, given back by leaving its `with` block."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from backends.pool import Pool
from backends.releasing import Releaser

# A waiter asks again so often: for its place, and with the replicas of the moment. (A wake-up that got lost is found by the
# gateway's beat.) The first time comes sooner: who has stood for a moment may have a lower class asked for a slot (order.lua).
FIRST_POLL_SECONDS = 0.25
POLL_SECONDS = 1.0
# Of one gateway no more than so many a second ask, in one pool: beyond it each asks less often.
POLLS_MAX = 256
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


class LineTooSlow(PoolFull):
    """By recent service times this call would wait longer than it may: refused at once, not in the end."""

    def __init__(self, depth: int, expected_seconds: float) -> None:
        super().__init__(depth)
        self.expected_seconds = expected_seconds


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

    def ask(self, pool: Pool, script: str, request: str, asked: list[str | int]) -> asyncio.Future[Any]: ...
    def kept_from(self, class_: str) -> int: ...
    def lease(self, pool: Pool) -> None: ...
    def listen(self, pool: Pool) -> None: ...
    def keep(self, pool: Pool, request: str) -> None: ...


class Slot:
    """`replica` is where the call may run, None until a slot is held.

    While it waits, `position` (1: the next) and `expected_seconds` say how the line stands, as of the last question. `worked` is
    told before leaving: the work that was really done (None: the estimate stands). `on_recall` is asked when a higher class needs
    the slot: with True it is given back, by `put_back()` when the engine was let go, and waited for again.

    A second attempt on another replica is a new slot with an id of its own (`<request>/2`), after this one was left.
    """

    def __init__(self, desk: Desk, pool: Pool, request_id: str, class_: str, *, rank: int, account: str, estimate: int) -> None:
        self.replica: str | None = None
        self.position: int | None = None
        self.expected_seconds: float | None = None
        self.worked: int | None = None
        self.on_recall: Callable[[], bool] | None = None
        self.returned = 0
        self.request, self.class_ = request_id, class_
        self._desk, self._pool = desk, pool
        self._who: tuple[str | int, ...] = (rank, account or "-", estimate)
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
        self._pool.left(self)
        if self.replica is not None or self._waits or self._unanswered:
            worked = -1 if self.worked is None else self.worked
            self._desk.releaser.release(self._pool.name, self.request, unsure=self._unanswered > 0, worked=worked)

    def try_now(self, preference: Prefer) -> asyncio.Future[str | None]:
        """A slot if one is free and nobody waits; never waits in line. To be gathered beside admit.

        Raises `QueueUnavailable`.
        """
        pool, loop = self._pool, asyncio.get_running_loop()
        if pool.waiting or (pool.refused_until and loop.time() < pool.refused_until):
            skipped: asyncio.Future[str | None] = loop.create_future()
            skipped.set_result(None)
            return skipped
        rank, account, _ = self._who
        return self._ask("try", [rank, account, self._desk.kept_from(self.class_)], preference)

    async def take(self, preference: Prefer, wait_seconds: float, depth_max: int) -> str:
        """The replica, after a wait of at most `wait_seconds` behind at most `depth_max` others of its class.

        Raises `PoolFull`, `LineTooSlow`, `WaitedTooLong`, `QueueUnavailable`.
        """
        if self.replica is not None:
            return self.replica
        loop = asyncio.get_running_loop()
        deadline, failures, poll = loop.time() + wait_seconds, 0, FIRST_POLL_SECONDS
        self._pool.waiting[self.request] = self
        while True:
            self._woken = loop.create_future()
            try:
                replica = await self._ask_in_line(preference, max(0.0, deadline - loop.time()), depth_max)
                failures = 0
            except QueueUnavailable:
                failures += 1
                if not self._waits or failures == UNANSWERED_MAX:
                    raise
                replica = None
            if replica is not None:
                self._pool.waiting.pop(self.request, None)
                return replica
            await self._wait(deadline, wait_seconds, poll)
            # In step with each other they would all ask in one instant, once a loss has made them ask anew together.
            poll = POLL_SECONDS * max(1.0, len(self._pool.waiting) / POLLS_MAX) * random.uniform(0.75, 1.25)  # noqa: S311

    def wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def recall(self) -> None:
        """A higher class needs the slot. Whether anything was put out yet only the owner knows: it says so when it is asked."""
        if self.on_recall is not None and self.on_recall():
            self._desk.counts["recalled"] += 1
        else:
            self._desk.counts["kept"] += 1
            self._desk.keep(self._pool, self.request)

    def put_back(self) -> None:
        """The engine was let go: the next `take` gives the slot back and stands at the head of its class."""
        self._pool.left(self)
        self.replica = self.on_recall = None
        self.returned += 1
        self._waits = True  # until `take` has told the server, leaving must
        self._desk.counts["returned"] += 1

    def running_record(self) -> str:
        """What a sweep needs to put the slot back when the server has lost it."""
        return " ".join(map(str, (self.replica, *self._who, self.returned)))

    async def _wait(self, deadline: float, wait_seconds: float, poll: float) -> None:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise WaitedTooLong(wait_seconds)
        self._desk.listen(self._pool)
        assert self._woken is not None
        await asyncio.wait([self._woken], timeout=min(poll, left))

    def _ask_in_line(self, preference: Prefer, wait_seconds: float, depth_max: int) -> asyncio.Future[str | None]:
        wait_ms, held_ms = int(wait_seconds * 1000), int(self._pool.held_seconds * 1000)
        return self._ask("acquire", [*self._who, self.returned, self._arrival, depth_max, wait_ms, held_ms], preference)

    def _ask(self, script: str, asked: list[str | int], preference: Prefer) -> asyncio.Future[str | None]:
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        if self.replica is not None:
            answer.set_result(self.replica)
            return answer
        load = self._pool.load
        for replica, cap in preference() if callable(preference) else preference:
            asked += (replica, cap, load[replica])
        self._send(script, asked, answer, may_lease=True)
        return answer

    def _send(self, script: str, asked: list[str | int], answer: asyncio.Future[str | None], *, may_lease: bool) -> None:
        self._unanswered += 1
        sent = self._desk.ask(self._pool, script, self.request, asked)

        def again() -> None:
            self._desk.lease(self._pool)
            self._send(script, asked, answer, may_lease=False)

        sent.add_done_callback(lambda reply: self._replied(reply, answer, again if may_lease else None))

    def _replied(self, reply: asyncio.Future[Any], answer: asyncio.Future[str | None], again: Callable[[], None] | None) -> None:
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
        if kind == "lease" and again is not None:
            again()
        elif kind in ("lease", "gone"):
            self._fail(answer, None)
        elif kind in ("full", "slow"):
            self._desk.counts["refused"] += 1
            _give(answer, PoolFull(int(facts[0])) if kind == "full" else LineTooSlow(int(facts[0]), int(facts[1]) / 1000))
        else:
            _give(answer, self._noted(kind, facts))

    def _noted(self, kind: str, facts: list[Any]) -> str | None:
        now = asyncio.get_running_loop().time()
        if kind == "held":
            self.replica = str(facts[0])
            self._waits, self.position, self.expected_seconds = False, None, None
            self._pool.runs(self, now)
            self._desk.counts["granted"] += 1
            return self.replica
        self._pool.contended_at = now
        if kind == "waits":
            self._arrival, self._waits, self.position = int(facts[0]), True, int(facts[1])
            self.expected_seconds = int(facts[2]) / 1000 or None
        else:
            self._pool.refused_until = now + REFUSAL_HOLDS_SECONDS
        return None

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
