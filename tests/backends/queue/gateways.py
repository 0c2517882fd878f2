"""Gateways of a test: each with its own connections, its beat, and a way to die without saying goodbye."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import redis

from backends.queue import Queue
from backends.slots import pool_keys
from backends.waking import BlockingWakes, Wakes
from gateway.valkey import Valkey, ValkeyUnavailable

POOL = "smol"
ONE = [("one", 1)]
# A machine that is busy with other tests may stall for longer than a gateway should wait.
PATIENT_MS = 2000


class Gateway:
    def __init__(self, url: str, name: str, lease_ms: int, wakes: Wakes | None, timeout_ms: int = PATIENT_MS) -> None:
        self.valkey = Valkey(url, timeout_ms)
        wakes = wakes or BlockingWakes(url)
        self.queue = Queue(self.valkey, wakes, name, unreachable=ValkeyUnavailable, lease_ms=lease_ms)
        self.beat: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.valkey.start()
        self.beat = asyncio.create_task(self.queue.beat())

    async def die(self) -> None:
        """As after kill -9: nothing more is said, what Valkey has of it stays."""
        if self.beat is not None:
            self.beat.cancel()
            self.beat = None
        await self.valkey.close()
        await self.queue.close(0)

    async def stop(self) -> None:
        if self.beat is None:
            return
        assert await self.queue.close(2), "a release was never acknowledged"
        await self.die()


@asynccontextmanager
async def gateway(
    url: str, name: str, lease_ms: int = 5000, wakes: Wakes | None = None, timeout_ms: int = PATIENT_MS
) -> AsyncIterator[Gateway]:
    found = Gateway(url, name, lease_ms, wakes, timeout_ms)
    await found.start()
    try:
        yield found
    finally:
        await found.stop()


@contextmanager
def looking(url: str) -> Iterator[Any]:
    """A plain client that sees what the server has."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


def held(client: Any) -> dict[str, str] | None:
    """Request -> replica, as the server has it; None while it reads its file."""
    try:
        slots = client.hgetall(pool_keys(POOL, ())[0])
    except redis.BusyLoadingError:
        return None
    return {request: slot.split()[0] for request, slot in slots.items()}


def line(client: Any, kind: str = "a") -> list[str]:
    """Who waits: class by class, as they came (`a`), or as their accounts have them (`f`)."""
    return [entry.split()[-1] for entry in client.zrange(pool_keys(POOL, ())[3], 0, -1) if entry.startswith(kind)]


async def until(condition: Callable[[], object], seconds: float = 5.0) -> float:
    """Seconds until the condition held; fails when it never does."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    while not condition():
        assert loop.time() - started < seconds, "this never came true"
        await asyncio.sleep(0.01)
    return loop.time() - started


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class DeafWakes:
    """A blocking connection on which no wake-up ever arrives."""

    async def pop(self, key: str, seconds: float) -> list[str]:
        await asyncio.sleep(seconds)
        return []

    async def close(self) -> None:
        return None


async def hold(
    owner: Gateway, request: str, hold_seconds: float, note: Callable[[str], None] | None = None, *,
    class_: str = "free", account: str = "", worked: int | None = None, depth: int = 1000,
) -> None:  # fmt: skip
    """A call that takes a slot, notes that it has it, and leaves."""
    with owner.queue.slot(POOL, request, class_, account=account) as slot:
        slot.worked = worked
        await slot.take(ONE, 10, depth)
        if note is not None:
            note(request)
        await asyncio.sleep(hold_seconds)
