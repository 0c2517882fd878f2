"""Slots on the replicas of a model pool, across all gateways: granted at once if one is free, else in the order of the plans."""

import asyncio
import logging
from collections import Counter
from typing import Any

from backends.classes import DEFAULT_CLASSES, Classes
from backends.pool import Call, Pool
from backends.releasing import Releaser
from backends.slot import Slot
from backends.slots import Scripts, grants_key, script_named, tombstone_key
from backends.waking import Wakes, WakesLost

LEASE_MS = 5000
BEAT_SECONDS = 0.5
POP_SECONDS = 1.0
# A pool that nobody used for so long is no longer leased; its next call leases it again.
IDLE_SECONDS = 60.0
# A gateway without waiters listens for so long after it has heard that others wait: its running calls may be asked back.
CONTENDED_SECONDS = 2.0
log = logging.getLogger(__name__)


class Queue:
    """One gateway's side of every pool.

    `unreachable` is what `scripts` raises when Valkey could not be asked. `beat()` and `close()` frame its life. `classes` may be
    replaced at any time; the next command goes by the new rules.
    Counters in `counts`: granted, refused, lost, released, swept, recalled, kept, returned.
    """

    def __init__(
        self, scripts: Scripts, wakes: Wakes, gateway_id: str, *,
        unreachable: type[Exception], lease_ms: int = LEASE_MS, classes: Classes = DEFAULT_CLASSES,
    ) -> None:  # fmt: skip
        self.gateway = gateway_id
        self.unreachable = unreachable
        self.classes = classes
        self.counts: Counter[str] = Counter()
        self._scripts, self._wakes = scripts, wakes
        self._lease_ms = lease_ms
        self._pools: dict[str, Pool] = {}
        self.releaser = Releaser(self._release, unreachable)

    def slot(self, pool: str, request_id: str, class_: str = "free", *, account: str = "", work_estimate: int = 0) -> Slot:
        """A context manager; leaving it gives the slot (or the place in the line) back. `work_estimate`: see work.py."""
        rank = self.classes.rank(class_)
        return Slot(self, self._pool(pool), request_id, class_, rank=rank, account=account, estimate=work_estimate)

    def running(self, pool: str) -> int:
        """Calls of this gateway that hold a slot."""
        return len(self._pool(pool).running)

    def waiting(self, pool: str) -> int:
        """Calls of this gateway that wait for one."""
        return len(self._pool(pool).waiting)

    def running_by_class(self, pool: str) -> Counter[str]:
        return Counter(call.class_ for call, _, _ in self._pool(pool).running.values())

    def waiting_by_class(self, pool: str) -> Counter[str]:
        return Counter(call.class_ for call in self._pool(pool).waiting.values())

    def load(self, pool: str) -> Counter[str]:
        """Calls of this gateway by replica, for the router."""
        return self._pool(pool).load

    def find(self, request_id: str) -> Call | None:
        """A call of this gateway that waits or runs."""
        for pool in self._pools.values():
            if request_id in pool.waiting:
                return pool.waiting[request_id]
            if request_id in pool.running:
                return pool.running[request_id][0]
        return None

    def pools(self) -> list[str]:
        return list(self._pools)

    async def beat(self) -> None:
        """Runs until cancelled: keeps this gateway's leases, and sweeps about once a second."""
        sweeps = False
        while True:
            for pool in self._pools.values():
                if pool.is_idle(asyncio.get_running_loop().time(), IDLE_SECONDS):
                    continue
                self.lease(pool)
                if sweeps:
                    self._sweep(pool)
            sweeps = not sweeps
            await asyncio.sleep(BEAT_SECONDS)

    async def close(self, timeout_seconds: float = 1.0) -> bool:
        """After the last slot was left; true when every release was acknowledged."""
        flushed = await self.releaser.flush(timeout_seconds)
        self.releaser.close()
        poppers = [pool.popper for pool in self._pools.values() if pool.popper]
        for popper in poppers:
            popper.cancel()
        await asyncio.gather(*poppers, return_exceptions=True)
        await self._wakes.close()
        return flushed

    # For Slot ------------------------------------------------------------------------------------------------------

    def ask(self, pool: Pool, script: str, request: str, asked: list[str | int]) -> asyncio.Future[Any]:
        """`try`, or `acquire`, which may wait in line."""
        now = asyncio.get_running_loop().time()
        pool.used_at = now
        if now >= pool.leased_until:
            self.lease(pool)
        gone = tombstone_key(pool.name, request)
        if script == "try":
            return self._scripts.script(script_named("try"), [*pool.try_keys, gone], [0, self.gateway, request, *asked])
        return self._scripts.script(script_named(script), [*pool.keys, gone], [*self._common(pool), request, *asked])

    def kept_from(self, class_: str) -> int:
        return self.classes.kept_from(class_)

    def lease(self, pool: Pool) -> None:
        pool.leased_until = asyncio.get_running_loop().time() + self._lease_ms / 2000
        sent = self._scripts.script(script_named("lease"), pool.try_keys, [0, self.gateway, self._lease_ms])
        sent.add_done_callback(lambda answer: self._leased(answer, pool))

    def keep(self, pool: Pool, request: str) -> None:
        sent = self._scripts.script(script_named("keep"), pool.keys, [*self._common(pool), request])
        sent.add_done_callback(lambda answer: self._answered(answer, pool))

    def listen(self, pool: Pool) -> None:
        """Hears of grants and recalls, as long as anybody waits."""
        if pool.popper is None or pool.popper.done():
            pool.popper = asyncio.get_running_loop().create_task(self._pop(pool))

    # ---------------------------------------------------------------------------------------------------------------

    def _pool(self, name: str) -> Pool:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = Pool(name, self.gateway, asyncio.get_running_loop().time())
        return pool

    def _common(self, pool: Pool) -> list[str | int]:
        # The server's clock: a gateway whose calendar is moved must not end the leases of those with another one.
        return [0, self.gateway, pool.names, self.classes.packed]

    def _release(self, pool_name: str, request: str, unsure: bool, worked: int) -> asyncio.Future[Any]:
        pool = self._pool(pool_name)
        keys = [*pool.keys, tombstone_key(pool.name, request)]
        self.counts["released"] += 1
        arguments = [*self._common(pool), request, int(unsure), worked]
        return self._scripts.script(script_named("release"), keys, arguments, lazy=True)

    def _sweep(self, pool: Pool) -> None:
        sent = self._scripts.script(script_named("sweep"), pool.keys, [*self._common(pool), *pool.known()])
        sent.add_done_callback(lambda answer: self._swept(answer, pool))

    def _answered(self, answer: asyncio.Future[Any], pool: Pool) -> bool:
        """Whether Valkey did what nobody waits for; if not, the lease may be gone too."""
        failure = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or failure is not None:
            pool.leased_until = 0.0
            if failure is not None and not isinstance(failure, self.unreachable):
                log.error("the beat of pool %s failed", pool.name, exc_info=failure)
            return False
        return True

    def _leased(self, answer: asyncio.Future[Any], pool: Pool) -> None:
        if not self._answered(answer, pool):
            return
        waiting, peers, lost = answer.result()
        pool.meets((self.gateway, *sorted({text(peer) for peer in peers} - {self.gateway})))
        if waiting:
            pool.contended_at = asyncio.get_running_loop().time()
            if pool.running:
                self.listen(pool)
        for request in map(text, lost):
            self._granted(pool, request)

    def _swept(self, answer: asyncio.Future[Any], pool: Pool) -> None:
        if not self._answered(answer, pool):
            return
        slots, waiters, cursor, ours = answer.result()
        self.counts["swept"] += slots + waiters
        pool.cursor = text(cursor)
        for request in map(text, ours):
            self._release_stranger(pool, request)

    def _granted(self, pool: Pool, request: str) -> None:
        if request in pool.waiting:
            pool.waiting[request].wake()
        else:
            self._release_stranger(pool, request)

    def _release_stranger(self, pool: Pool, request: str) -> None:
        """Ours by name, and nobody here waits for it or runs it: it left."""
        if request not in pool.waiting and request not in pool.running:
            self.releaser.release(pool.name, request, unsure=False)

    async def _pop(self, pool: Pool) -> None:
        while pool.is_contended(asyncio.get_running_loop().time(), CONTENDED_SECONDS):
            try:
                told = await self._wakes.pop(grants_key(pool.name, self.gateway), POP_SECONDS)
            except WakesLost:
                await asyncio.sleep(POP_SECONDS)
                continue
            for kind, request in (words.split(" ")[:2] for words in told):
                if kind == "recall" and request in pool.running:
                    pool.running[request][0].recall()
                elif kind == "grant":
                    self._granted(pool, request)


def text(word: bytes | str) -> str:
    return word.decode() if isinstance(word, bytes) else word
