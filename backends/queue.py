"""Slots on the replicas of a model pool, across all gateways: granted at once if one is free, else after a bounded wait."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable
from typing import Any

from backends.pool import Pool
from backends.releasing import Releaser
from backends.slot import Slot
from backends.slots import Scripts, grants_key, script_named, tombstone_key
from backends.waking import Wakes, WakesLost

LEASE_MS = 5000
BEAT_SECONDS = 0.5
POP_SECONDS = 1.0
# A pool that nobody used for so long is no longer leased; its next call leases it again.
IDLE_SECONDS = 60.0
log = logging.getLogger(__name__)


class Queue:
    """One gateway's side of every pool.

    `unreachable` is what `scripts` raises when Valkey could not be asked. `beat()` and `close()` frame its life.
    Counters in `counts`: granted, refused, lost, released, swept.
    """

    def __init__(
        self,
        scripts: Scripts,
        wakes: Wakes,
        gateway_id: str,
        *,
        unreachable: type[Exception],
        lease_ms: int = LEASE_MS,
    ) -> None:
        self.gateway = gateway_id
        self.unreachable = unreachable
        self.counts: Counter[str] = Counter()
        self._scripts, self._wakes = scripts, wakes
        self._lease_ms = lease_ms
        self._pools: dict[str, Pool] = {}
        self.releaser = Releaser(self._release, unreachable)

    def slot(self, pool: str, request_id: str, class_: str = "free") -> Slot:
        """A context manager; leaving it gives the slot (or the place in the line) back. `class_` will order the line."""
        return Slot(self, self._pool(pool), request_id, class_)

    def running(self, pool: str) -> int:
        """Calls of this gateway that hold a slot."""
        return len(self._pool(pool).running)

    def waiting(self, pool: str) -> int:
        """Calls of this gateway that wait for one."""
        return len(self._pool(pool).waiting)

    def load(self, pool: str) -> Counter[str]:
        """Calls of this gateway by replica, for the router."""
        return self._pool(pool).load

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
                    self._watch(self._sweep(pool), pool)
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

    def acquire(self, pool: Pool, request: str, asked: list[str | int]) -> asyncio.Future[Any]:
        now = asyncio.get_running_loop().time()
        pool.used_at = now
        if now >= pool.leased_until:
            self.lease(pool)
        keys = [*pool.keys, tombstone_key(pool.name, request)]
        return self._scripts.script(script_named("acquire"), keys, [*self._common(pool), request, *asked])

    def lease(self, pool: Pool) -> None:
        pool.leased_until = asyncio.get_running_loop().time() + self._lease_ms / 2000
        arguments = [*self._common(pool), self._lease_ms]
        self._watch(self._scripts.script(script_named("lease"), pool.keys, arguments), pool)

    def await_wakes(self, pool: Pool) -> None:
        """Listens for grants as long as the pool has waiters."""
        if pool.popper is None or pool.popper.done():
            pool.popper = asyncio.get_running_loop().create_task(self._pop(pool))

    # ---------------------------------------------------------------------------------------------------------------

    def _pool(self, name: str) -> Pool:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = Pool(name, self.gateway, asyncio.get_running_loop().time())
        return pool

    def _common(self, pool: Pool) -> list[str | int]:
        # No clock offset: a gateway whose calendar is moved must not end the leases of those with another one.
        return [0, self.gateway, pool.names]

    def _release(self, pool_name: str, request: str, unsure: bool) -> asyncio.Future[Any]:
        pool = self._pool(pool_name)
        keys = [*pool.keys, tombstone_key(pool.name, request)]
        self.counts["released"] += 1
        return self._scripts.script(script_named("release"), keys, [*self._common(pool), request, int(unsure)], lazy=True)

    def _sweep(self, pool: Pool) -> Awaitable[Any]:
        arguments = [*self._common(pool), *pool.known()]
        return self._scripts.script(script_named("sweep"), pool.keys, arguments)

    def _watch(self, sent: Awaitable[Any], pool: Pool) -> None:
        asyncio.ensure_future(sent).add_done_callback(lambda answer: self._beaten(answer, pool))

    def _beaten(self, answer: asyncio.Future[Any], pool: Pool) -> None:
        failure = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or failure is not None:
            pool.leased_until = 0.0
            if failure is not None and not isinstance(failure, self.unreachable):
                log.error("the beat of pool %s failed", pool.name, exc_info=failure)
            return
        words = answer.result()
        if words and isinstance(words[0], int):
            self.counts["swept"] += words[0] + words[1]
        else:
            pool.meets((self.gateway, *sorted({text(peer) for peer in words} - {self.gateway})))

    async def _pop(self, pool: Pool) -> None:
        while pool.waiting:
            try:
                grants = await self._wakes.pop(grants_key(pool.name, self.gateway), POP_SECONDS)
            except WakesLost:
                await asyncio.sleep(POP_SECONDS)
                continue
            for request in (grant.split(" ", 1)[0] for grant in grants):
                if request in pool.waiting:
                    pool.waiting[request].wake()
                elif request not in pool.running:
                    self.releaser.release(pool.name, request, unsure=False)


def text(word: bytes | str) -> str:
    return word.decode() if isinstance(word, bytes) else word
