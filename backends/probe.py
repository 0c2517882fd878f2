"""Asks every replica for its health and its load every two seconds: one that hangs or fell over is found before a call finds it,
and one that has too much gets less."""

import asyncio
import time

from backends.capacity import Capacity
from backends.choose import Standing
from backends.client import Aborted, EngineClient, EngineFault, EngineUnreachable
from backends.engines.report import PAGE_LIMIT_BYTES, Report, read_report
from backends.fleet import Replica
from backends.readiness import Readiness
from backends.roster import Roster, pool_of
from backends.stall import STUCK_SECONDS, Pulse, after_look, is_stuck
from backends.states import State

EVERY_SECONDS = 2.0
# vLLM answers from the event loop that also tokenizes, which may take a while; a hung engine is out after two of these.
PATIENCE_SECONDS = 3.0


class PageTooLarge(Exception):
    """No metrics page of an engine is as large."""


async def watch(
    client: EngineClient,
    roster: Roster,
    readiness: Readiness,
    capacity: Capacity,
    *,
    every_seconds: float = EVERY_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
    stuck_seconds: float = STUCK_SECONDS,
) -> None:
    """Runs until it is cancelled; who comes is watched at once, and of who goes nothing is kept."""

    loop = asyncio.get_running_loop()

    async def watch_one(replica: Replica) -> None:
        pulse = Pulse()
        while True:
            was_up = readiness.standing(replica.id) is not Standing.BROKEN
            if roster.state(replica.id) is not State.SLEEPING and await probe(client, replica, readiness, patience_seconds):
                (capacity.is_well if was_up else capacity.came_back)(replica)
                report = await weigh(client, replica, capacity, patience_seconds)
                pulse = after_look(pulse, report, loop.time())
                readiness.stuck(replica.id, is_stuck(pulse, loop.time(), stuck_seconds))
            if readiness.is_given_up(replica.id) and any(readiness.is_well(one.id) for one in roster.open(pool_of(replica))):
                client.abandon(replica.id)
            await asyncio.sleep(every_seconds)

    changed, watched = asyncio.Event(), dict[Replica, asyncio.Task[None]]()
    roster.listen(changed.set)
    async with asyncio.TaskGroup() as group:
        while True:
            changed.clear()
            present = set(roster.replicas)
            for replica in watched.keys() - present:
                watched.pop(replica).cancel()
                for part in (client, readiness, capacity):
                    part.forget(replica.id)
            for replica in present - watched.keys():
                watched[replica] = group.create_task(watch_one(replica))
            await changed.wait()


async def probe(client: EngineClient, replica: Replica, readiness: Readiness, patience_seconds: float) -> bool:
    """Once; whether it is well. An engine is well when it says so, whole and in time."""
    is_healthy = False
    try:
        status, _ = await _page(client, replica, replica.engine.health_path, patience_seconds)
        is_healthy = status < 300
    except EngineUnreachable:
        readiness.probed(replica.id, is_healthy=False, is_certain=True)
    except (EngineFault, Aborted, TimeoutError, PageTooLarge):
        readiness.probed(replica.id, is_healthy=False)
    else:
        readiness.probed(replica.id, is_healthy)
    return is_healthy


async def weigh(client: EngineClient, replica: Replica, capacity: Capacity, patience_seconds: float) -> Report:
    """Once. No page, none in time, or one that says nothing leaves what is known as it is."""
    if replica.engine.metrics_path is None:
        return Report()
    asked_at = time.monotonic()
    try:
        status, page = await _page(client, replica, replica.engine.metrics_path, patience_seconds)
    except (EngineFault, Aborted, TimeoutError, PageTooLarge):
        return Report()
    report = read_report(page, replica.engine.gauges) if status == 200 else Report()
    capacity.reported(replica, report, time.monotonic() - asked_at)
    return report


async def _page(client: EngineClient, replica: Replica, path: str, patience_seconds: float) -> tuple[int, bytes]:
    async with asyncio.timeout(patience_seconds):
        with client.open(replica, path, b"", (), method="GET") as answer:
            await answer.start()
            page = bytearray()
            while part := await answer.read():
                page += part
                if len(page) > PAGE_LIMIT_BYTES:
                    raise PageTooLarge
            return answer.status, bytes(page)
