"""Ends the holds of gateways that died: run by every gateway and the worker, harmless together."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.clock import Clock
from gateway.limits import scripts
from gateway.limits.event import expired_event
from gateway.limits.lease import OPENING_MS
from gateway.limits.outbox import TOMBSTONE_MS
from gateway.limits.shard import SHARDS, Shard
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

SWEEP_SECONDS = 1.0
HOLDS_AT_ONCE = 256  # per dead gateway and turn; their answers must fit into the connection's time-out
GATEWAYS_AT_ONCE = 16


class Sweeper:
    def __init__(self, valkey: Valkey, clock: Clock, *, gateway: str, shards: int = SHARDS, lease_ms: int = 5000,
                 opening_ms: int = OPENING_MS) -> None:  # fmt: skip
        self._valkey, self._clock = valkey, clock
        self._lease_ms, self._opening_ms = lease_ms, opening_ms
        self._shards = tuple(Shard(number, gateway) for number in range(shards))
        self._task: asyncio.Task[None] | None = None
        self.swept = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._sweep_forever(), name="sweep")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def sweep(self) -> int:
        """One turn over all shards; returns how many holds were ended. Raises: ValkeyUnavailable, ValkeyRefused."""
        now = self._clock.now_ms() - self._clock.offset_ms  # leases are kept in the server's own time
        expired = await asyncio.gather(
            *(
                self._valkey.call("ZRANGEBYSCORE", shard.leases, "-inf", now, "LIMIT", 0, GATEWAYS_AT_ONCE)
                for shard in self._shards
            )
        )
        ended = 0
        for shard, gateways in zip(self._shards, expired, strict=True):
            for gateway in gateways:
                ended += await self._end(shard, gateway.decode())
        self.swept += ended
        return ended

    async def _end(self, shard: Shard, gateway: str) -> int:
        flat = await self._valkey.call("HRANDFIELD", shard.holds_of(gateway), HOLDS_AT_ONCE, "WITHVALUES")
        holds: Mapping[bytes, bytes] = dict(zip(flat[::2], flat[1::2], strict=True)) or {b"": b""}
        answers = await asyncio.gather(
            *(self._end_hold(shard, gateway, request_id.decode(), packed) for request_id, packed in holds.items())
        )
        if b"epoch" in answers:  # nobody has greeted this server yet: its gateways' time to come back begins now
            await self._valkey.script(
                scripts.OPEN, (shard.epoch, shard.wm), (self._valkey.run_id, secrets.token_hex(8), self._opening_ms)
            )
        return answers.count(b"swept")

    def _end_hold(self, shard: Shard, gateway: str, request_id: str, packed: bytes) -> asyncio.Future[Any]:
        account, key = orjson.loads(packed)[:2] if packed else ("", "")
        keys = (shard.epoch, shard.leases, shard.holds_of(gateway), *shard.call(request_id, account, key), shard.events)
        event = expired_event(request_id, packed, gateway) if packed else b""
        args = (self._valkey.run_id, gateway, request_id, event, self._lease_ms, TOMBSTONE_MS)
        return self._valkey.script(scripts.SWEEP, keys, args)

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            if self._valkey.connected:
                with contextlib.suppress(ValkeyUnavailable, ValkeyRefused):
                    await self.sweep()
