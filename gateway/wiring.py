"""Puts the house together from its settings, and takes it apart again in the right order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from backends.client import EngineClient, Patience
from backends.failures import EngineTimedOut
from backends.fleet import Fleet, Replica
from backends.probe import watch
from backends.queue import Queue
from backends.readiness import Readiness
from backends.waking import RedisWakes
from billing.rebuild import RecordSource
from gateway.access.addresses import Network, networks
from gateway.access.keyring import Keyring
from gateway.api.faults import EngineFailed, EngineOverloaded
from gateway.clock import Clock
from gateway.drain import Drain
from gateway.limits.gate import Gate
from gateway.settings import Settings
from gateway.telemetry import Log, Metrics
from gateway.valkey import Valkey, ValkeyUnavailable
from models.catalogue import Catalogue


@dataclass(slots=True)
class House:
    """Everything one gateway process has. Nothing here is looked up by name or found through a global."""

    settings: Settings
    clock: Clock
    log: Log
    metrics: Metrics
    drain: Drain
    valkey: Valkey
    gate: Gate
    keyring: Keyring
    catalogue: Catalogue
    pools: Mapping[str, Sequence[Replica]]
    queue: Queue
    engines: EngineClient
    readiness: Readiness
    trusted_proxies: Sequence[Network]

    def preference(self, model: str) -> Sequence[tuple[str, int]]:
        """The replicas that may take a call for the model, best first, with how many calls each takes at once."""
        order = self.readiness.prefer(self.pools.get(model, ()), self.queue.load(model))
        return [(replica.id, replica.slots) for replica in order]

    def engine_failed(self, replica: Replica, failure: Exception, status: int) -> None:
        """Note whose fault it was: only the replica's own count against it."""
        if isinstance(failure, EngineFailed | EngineOverloaded):
            self.readiness.called(replica.id, status if status != 200 else 502)
        else:
            self.readiness.called(replica.id, failure)
        self.metrics.engine_fault(replica.id, type(failure).__name__)
        self.log.warning("engine_fault", replica=replica.id, kind=type(failure).__name__, why=str(failure)[:300])
