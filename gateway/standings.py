"""Where each waiting call stands, told to every gateway once a second, so that its client may ask any of them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from backends.slot import QueueUnavailable
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

EVERY_SECONDS = 1.0
# A standing that is not told anew is gone: its call runs, has ended, or its gateway has.
TOLD_MS = 3_000
# How long the wait of a stream that was answered 200 before it had a slot can be asked for.
KEPT_MS = 600_000


class NotInLine(Exception):
    """No call of this key with this id waits, or none that anybody knows of."""


class Waiter(Protocol):
    """What is needed of `backends.slot.Slot`."""

    @property
    def position(self) -> int | None: ...
    @property
    def expected_seconds(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """One call that waits for a slot, or did."""

    account: str
    key: str
    model: str
    service_class: str
    slot: Waiter
    since: float  # on the monotonic clock

    def told(self, request_id: str, state: str) -> dict[str, Any]:
        position, seconds = self.slot.position, self.slot.expected_seconds
        is_waiting = state == "waiting"
        return {
            "object": "queue.entry",
            "id": request_id,
            "state": state,
            "model": self.model,
            "class": self.service_class,
            "position": position if is_waiting else None,
            "estimate_ms": round(seconds * 1000) if is_waiting and seconds is not None else None,
            "queue_ms": round((time.monotonic() - self.since) * 1000),
        }


class Standings:
    """One gateway's waiting calls, and what the others told of theirs. `tell()` runs as long as the gateway does."""

    def __init__(self, valkey: Valkey, shards: int) -> None:
        self._valkey, self._shards = valkey, shards
        self._waiting: dict[str, Standing] = {}

    @contextmanager
    def shows(self, request_id: str, standing: Standing) -> Iterator[None]:
        self._waiting[request_id] = standing
        try:
            yield
        finally:
            del self._waiting[request_id]

    def keep(self, request_id: str, standing: Standing) -> None:
        """It has waited, and its status had left before: its wait stays to be asked for."""
        self._put(request_id, standing, "served", KEPT_MS)

    async def find(self, request_id: str, account: str, key: str) -> dict[str, Any]:
        """For the key that sent the call, and no other. Raises: NotInLine, QueueUnavailable."""
        standing = self._waiting.get(request_id)
        if standing is not None and standing.key == key:
            return standing.told(request_id, "waiting")
        try:
            told = await self._valkey.call("GET", self._name(request_id, account))
        except (ValkeyUnavailable, ValkeyRefused) as error:
            raise QueueUnavailable from error
        found: dict[str, Any] = orjson.loads(told or b"{}")
        if found.pop("key", None) != key:
            raise NotInLine(request_id)
        return found

    async def tell(self) -> None:
        """Runs until cancelled. Who waits for less than a second is not told of."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            is_older_than = time.monotonic() - EVERY_SECONDS
            for request_id, standing in self._waiting.items():
                if standing.since < is_older_than:
                    self._put(request_id, standing, "waiting", TOLD_MS)

    def _put(self, request_id: str, standing: Standing, state: str, kept_ms: int) -> None:
        text = orjson.dumps({**standing.told(request_id, state), "key": standing.key})
        answer = self._valkey.call("SET", self._name(request_id, standing.account), text, "PX", kept_ms)
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # what was not told is told again

    def _name(self, request_id: str, account: str) -> str:
        return f"{Shard(shard_of(account, self._shards), '').tag}:q:{request_id}"
