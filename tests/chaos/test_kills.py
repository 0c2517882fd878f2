"""kill -9 of each process in turn under load: nothing is lost, nothing is billed twice, nothing stays taken (promise 3)."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.chaos.conftest import MODEL, Ground
from tests.chaos.history import History, Load, check
from tests.support.gateway import Customer, Running

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SCRIPT = {"chunks": 6, "pace_ms": 15}
BODY: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "@engine " + json.dumps(SCRIPT)}]}
LEASE_MS = 2000
# The crowd sends one body all the time, and goes on after an outage has refused it a hundred times.
SETTINGS = {"lease_ms": LEASE_MS, "loop_errors": 1_000_000}


class Scene:
    """Two gateways, a worker, and 16 clients that never stop asking."""

    def __init__(self, ground: Ground, quota: int | None = None) -> None:
        self.ground = ground
        ground.town.plan("load", quota_per_day=quota)
        self.customer: Customer = ground.town.key("load")
        self.worker = ground.town.worker(lease_ms=LEASE_MS)
        self.gateways = [ground.town.gateway(**SETTINGS), ground.town.gateway(**SETTINGS)]

    async def play(self, fault: Callable[[], Any], mend: Callable[[], Any], *, seconds: float = 2.0, down: float = 0.5) -> float:
        """Returns when the fault struck."""
        self.load = Load([gateway.port for gateway in self.gateways], self.customer, BODY)
        await asyncio.sleep(seconds)
        struck = time.monotonic()
        await asyncio.to_thread(fault)
        await asyncio.sleep(down)
        await asyncio.to_thread(mend)
        await asyncio.sleep(seconds + 1)
        self.history: History = await self.load.stop()
        await asyncio.to_thread(self.ground.calm)
        return struck

    def prove(self, *, expired_max: int) -> None:
        """The ledger against the clients' log; counters, roll-ups and rows against each other."""
        ledger = self.ground.ledger()
        verdicts = check(self.history, ledger, expired_max=expired_max)
        print(json.dumps({**self.history.summary(), **verdicts}))
        assert self.history.summary()["delivered"] > 20, "the load never got going"
        by_rollup, by_rows = self.ground.rollups()
        assert by_rollup == by_rows == verdicts["posted"]
        used, open_calls = self.ground.counters()
        assert (used, open_calls) == (verdicts["posted"], 0)


def nothing() -> None:
    pass


async def test_a_quiet_run_loses_nothing(ground: Ground) -> None:
    scene = Scene(ground)
    await scene.play(nothing, nothing)
    scene.prove(expired_max=0)
    assert scene.history.summary()["maybe"] == 0


async def test_a_gateway_is_killed(ground: Ground) -> None:
    scene = Scene(ground)
    victim = scene.gateways[0]
    struck = await scene.play(victim.kill, nothing, seconds=3)
    scene.prove(expired_max=scene.history.in_flight_at(struck, victim.port))


async def test_a_worker_is_killed(ground: Ground) -> None:
    scene = Scene(ground)
    await scene.play(scene.worker.kill, lambda: ground.town.worker(lease_ms=LEASE_MS))
    scene.prove(expired_max=0)


async def test_an_engine_is_killed(ground: Ground) -> None:
    scene = Scene(ground)
    await scene.play(lambda: ground.engine.kill(), ground.restart_engine)
    scene.prove(expired_max=0)


async def test_postgresql_is_killed_and_calls_go_on(ground: Ground) -> None:
    scene = Scene(ground)
    struck = await scene.play(ground.postgres.process.kill, ground.restart_postgres, down=1.5)
    scene.prove(expired_max=0)
    during = [call for call in scene.history.calls if struck + 0.2 < call.began < struck + 1.2]
    assert during
    assert all(call.delivered for call in during)


async def test_valkey_is_killed(ground: Ground) -> None:
    scene = Scene(ground)
    struck = await scene.play(ground.valkey.process.kill, ground.valkey.start)
    scene.prove(expired_max=0)
    during = [call for call in scene.history.calls if struck + 0.1 < call.began < struck + 0.4]
    assert during
    assert all(call.reply.status == 503 and call.ended - call.began < 1 for call in during), "a call hung, or was let through"


async def test_valkey_is_killed_and_its_last_writes_are_lost(ground: Ground) -> None:
    """What a slow fsync does: the append-only file ends earlier than what was acknowledged."""

    def lose_the_tail() -> None:
        ground.valkey.process.kill()
        logs = sorted((ground.valkey.valkey.folder).rglob("*.incr.aof"))
        assert logs
        with logs[-1].open("r+b") as log:
            size = log.seek(0, 2)
            log.truncate(max(0, size - 200_000))

    scene = Scene(ground)
    await scene.play(lose_the_tail, ground.valkey.start)
    scene.prove(expired_max=0)


async def test_valkey_is_flushed(ground: Ground) -> None:
    def flush() -> None:
        with redis.Redis.from_url(ground.valkey.url) as client:
            client.flushall()

    scene = Scene(ground)
    await scene.play(flush, nothing)
    scene.prove(expired_max=0)


async def test_a_gateway_and_then_its_replacement_under_a_quota(ground: Ground) -> None:
    """A quota of 100 stays one of 100 while gateways die."""
    scene = Scene(ground, quota=100)
    victim = scene.gateways[0]
    struck = await scene.play(victim.kill, nothing, seconds=1.5)
    scene.prove(expired_max=scene.history.in_flight_at(struck, victim.port))
    assert scene.ground.counters()[0] == 100


CRASH_POINTS = ["gate:before_admit", "gate:after_admit", "outbox:before_settle", "outbox:after_settle"]


@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_a_gateway_crashes_at_a_named_point(ground: Ground, point: str) -> None:
    scene = Scene(ground)
    crashing: list[Running] = []

    def crash() -> None:
        running = ground.town.gateway(**SETTINGS, crash_at=point)
        crashing.append(running)
        scene.load._ports = [*scene.load._ports, running.port]

    await scene.play(crash, nothing, down=1.0)
    assert crashing[0].process.wait(5) == 137
    scene.prove(expired_max=scene.history.in_flight_at(_end_of(scene.history, crashing[0].port), crashing[0].port))


def _end_of(history: History, port: int) -> float:
    """When the process died: its first call that was cut."""
    return min(call.ended for call in history.calls if call.port == port and call.maybe) - 0.001


@pytest.mark.parametrize("point", ["worker:after_insert", "worker:after_commit", "worker:after_trim"])
async def test_a_worker_crashes_at_a_named_point(ground: Ground, point: str) -> None:
    scene = Scene(ground)
    scene.worker.kill()
    crashing = ground.town.worker(lease_ms=LEASE_MS, crash_at=point)
    await scene.play(nothing, lambda: ground.town.worker(lease_ms=LEASE_MS), down=1.0)
    if point != "worker:after_trim":  # nothing is trimmed before a minute has passed
        assert crashing.process.wait(5) == 137
    scene.prove(expired_max=0)
