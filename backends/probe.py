"""Asks every replica for its health every two seconds, so that one that hangs or fell over is found before a call finds it."""

import asyncio
from collections.abc import Sequence

from backends.client import Aborted, EngineClient, EngineFault, EngineUnreachable
from backends.fleet import Replica
from backends.readiness import Readiness

EVERY_SECONDS = 2.0
# vLLM answers from the event loop that also tokenizes, which may take a while; a hung engine is out after two of these.
PATIENCE_SECONDS = 3.0


async def watch(
    client: EngineClient,
    replicas: Sequence[Replica],
    readiness: Readiness,
    *,
    every_seconds: float = EVERY_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> None:
    """Runs until it is cancelled."""

    async def watch_one(replica: Replica) -> None:
        while True:
            await probe(client, replica, readiness, patience_seconds)
            await asyncio.sleep(every_seconds)

    async with asyncio.TaskGroup() as group:
        for replica in replicas:
            group.create_task(watch_one(replica))


async def probe(client: EngineClient, replica: Replica, readiness: Readiness, patience_seconds: float) -> None:
    """Once. An engine is well when it says so, whole and in time."""
    try:
        async with asyncio.timeout(patience_seconds):
            with client.open(replica, replica.engine.health_path, b"", (), method="GET") as answer:
                await answer.start()
                while await answer.read():
                    pass
    except EngineUnreachable:
        readiness.probed(replica.id, is_healthy=False, is_certain=True)
    except (EngineFault, Aborted, TimeoutError):
        readiness.probed(replica.id, is_healthy=False)
    else:
        readiness.probed(replica.id, is_healthy=answer.status < 300)
