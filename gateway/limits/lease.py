"""This gateway's life in every shard: leases renewed, epochs opened, watermarks read, the clock kept in step."""

import asyncio
import contextlib
import secrets
from collections.abc import Sequence
from typing import Any

from gateway.clock import Clock
from gateway.limits import scripts
from gateway.limits.hold import Hold
from gateway.limits.outbox import Outbox
from gateway.limits.shard import Shard
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

BEAT_SECONDS = 0.5
# A new epoch takes no calls for this long: two beats, or the longest attempt to connect, the longest wait before it
# (gateway/valkey.py: 0.5 s each) and the round trips.
OPENING_MS = 1200
# A shard without calls for this long is no longer leased (and costs nothing).
IDLE_SECONDS = 60.0
# Holds put back in one write: their answers must fit into the connection's time-out.
ASSERTS_AT_ONCE = 500


class Leases:
    def __init__(self, valkey: Valkey, shards: Sequence[Shard], outbox: Outbox, clock: Clock, *, gateway: str,
                 lease_ms: int = 5000, opening_ms: int = OPENING_MS) -> None:  # fmt: skip
        self._valkey, self._shards, self._outbox, self._clock = valkey, shards, outbox, clock
        self._gateway, self._lease_ms, self._opening_ms = gateway, lease_ms, opening_ms
        self._opening: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self.epochs = 0  # new ones seen; each shard counts
        outbox.on_new_epoch = self.reopen
        valkey.listeners.append(self._reconnected)

    async def start(self) -> None:
        """Open every shard and keep on; without Valkey it is done as soon as it is back."""
        self._beating = asyncio.create_task(self._beat_forever(), name="leases")
        with contextlib.suppress(ValkeyUnavailable, ValkeyRefused):
            await self.reopen()

    async def close(self) -> None:
        for task in (self._beating, self._opening):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ValkeyUnavailable, ValkeyRefused):
                    await task

    def renew(self, shard: Shard) -> None:
        """Lease a shard ahead of a call: both leave in one write, in this order."""
        self._lease(shard)

    def reopen(self) -> asyncio.Task[None]:
        """Learn each shard's epoch, and give a new one what it must know. One at a time; all wait for the same."""
        if self._opening is None or self._opening.done():
            self._begin_opening()
        assert self._opening is not None
        return self._opening

    def put_back(self, hold: Hold, shard: Shard, nonce: str) -> asyncio.Future[Any]:
        """Assert a hold under a nonce."""
        ask = hold.ask
        keys = (shard.epoch, shard.leases, shard.holds, *shard.call(ask.request_id, ask.account, ask.key))
        return self._valkey.script(scripts.ASSERT, keys, (nonce, self._gateway, ask.request_id, ask.packed(nonce)))

    def _reconnected(self) -> None:
        self._begin_opening()  # one that waited for the connection before has failed with it

    def _begin_opening(self) -> None:
        # Sent here and not in the task: no other command of this connection may come before them.
        opened = [self._open(shard) for shard in self._shards]
        for shard in self._in_use():
            self.renew(shard)
        self._opening = asyncio.create_task(self._recover(opened), name="epochs")
        self._opening.add_done_callback(_seen)

    def _open(self, shard: Shard) -> asyncio.Future[Any]:
        fresh = (self._valkey.run_id, secrets.token_hex(8), self._opening_ms)
        return self._valkey.script(scripts.OPEN, (shard.epoch, shard.wm), fresh)

    async def _recover(self, opened: Sequence[asyncio.Future[Any]]) -> None:
        replies = await asyncio.gather(*opened)
        await self._keep_time()
        for shard, (nonce, _, _, watermark) in zip(self._shards, replies, strict=True):
            await self._follow(shard, nonce.decode())
            self._outbox.release(shard, watermark)
        self._outbox.resume()

    async def _follow(self, shard: Shard, nonce: str) -> None:
        """Into a shard's new epoch: open holds first, then every end that it may have forgotten, then calls."""
        if nonce == shard.nonce:
            return
        if shard.nonce:
            self.epochs += 1
        holds = list(shard.open.values())
        if holds:
            self.renew(shard)
        for start in range(0, len(holds), ASSERTS_AT_ONCE):
            still_open = [hold for hold in holds[start : start + ASSERTS_AT_ONCE] if hold.request_id in shard.open]
            await asyncio.gather(*(self.put_back(hold, shard, nonce) for hold in still_open))
        if shard.nonce:
            await self._valkey.script(scripts.FORGET, (shard.epoch, shard.holds), (nonce,))
        shard.nonce = nonce
        self._outbox.send_again(shard)

    def _in_use(self) -> list[Shard]:
        since = asyncio.get_running_loop().time() - IDLE_SECONDS
        return [shard for shard in self._shards if shard.open or shard.kept or shard.used_at > since]

    def _lease(self, shard: Shard) -> asyncio.Future[Any]:
        shard.leased_until = asyncio.get_running_loop().time() + self._lease_ms / 2000
        answer = self._valkey.script(scripts.LEASE, (shard.epoch, shard.leases, shard.wm), (self._gateway, self._lease_ms))
        answer.add_done_callback(_seen)
        return answer

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._valkey.connected:
                with contextlib.suppress(ValkeyUnavailable, ValkeyRefused):
                    await self._beat()

    async def _beat(self) -> None:
        shards = self._in_use()
        leased = [self._lease(shard) for shard in shards]
        await self._keep_time()
        for shard, (nonce, _, watermark) in zip(shards, await asyncio.gather(*leased), strict=True):
            if nonce.decode() != shard.nonce:
                await self.reopen()
                return
            self._outbox.release(shard, watermark)
        self._outbox.resume()

    async def _keep_time(self) -> None:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        seconds, microseconds = await self._valkey.call("TIME")
        rtt_ms = round((loop.time() - asked_at) * 1000)
        self._clock.synchronise(int(seconds) * 1000 + int(microseconds) // 1000, rtt_ms)


def _seen(answer: asyncio.Future[Any]) -> None:
    """Its failure is met elsewhere: by the next beat, or by whoever waits for it."""
    if not answer.cancelled():
        answer.exception()
