"""Puts the house together from its settings, and takes it apart again in the right order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backends.capacity import Capacity
from backends.choose import COLD, Warmth
from backends.classes import CLASSES
from backends.client import EngineClient, Patience
from backends.dedicated import Way
from backends.discovery import discover
from backends.failures import EngineHungUp, EngineUnreachable
from backends.fleet import Fleet, Replica, dedicated_pools, shared_pools
from backends.prefix import NO_PROMPT, Prompt
from backends.prefixes import Prefixes
from backends.probe import watch
from backends.queue import Queue
from backends.readiness import Readiness
from backends.roster import Roster
from backends.waking import BlockingWakes
from billing.reader import Reader, RecordUnavailable
from billing.rebuild import Recorded, RecordSource
from billing.unknown import AccountUnknown
from gateway.access.addresses import Network, networks
from gateway.access.keyring import Keyring
from gateway.access.keystore import KeyStore
from gateway.api.intake import Intake
from gateway.api.salts import Salts
from gateway.classes import classes_of, follow_plans
from gateway.clock import Clock
from gateway.drain import Drain
from gateway.fetch.fetcher import Fetcher
from gateway.fetch.policy import Policy
from gateway.fleet.following import Following
from gateway.fleet.spending import Spending
from gateway.limits.gate import Gate
from gateway.limits.rebuild import Source, SourceUnavailable
from gateway.log import Log
from gateway.loops import Loops
from gateway.menu import Menu
from gateway.seal import Seal
from gateway.settings import Settings
from gateway.standings import Standings
from gateway.telemetry import Metrics
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
    menu: Menu
    roster: Roster
    queue: Queue
    engines: EngineClient
    readiness: Readiness
    prefixes: Prefixes
    fetcher: Fetcher | None
    capacity: Capacity
    standings: Standings
    trusted_proxies: Sequence[Network]
    seal: Seal
    salts: Salts
    loops: Loops
    intake: Intake
    record: Reader
    spending: Spending

    def preference(self, way: Way, prompt: Prompt = NO_PROMPT, tried: Collection[str] = ()) -> list[tuple[str, int]]:
        """The replicas that may take a call, best first, with how many calls each takes at once. `tried` have failed it."""
        tightened, warmth = self.capacity.tightened, COLD
        if prompt.chain:
            warmth = Warmth(prompt, self.prefixes.known([replica.id for replica in way.replicas], prompt))
        order: Sequence[Replica] = self.readiness.prefer(way.replicas, self.queue.load(way.pool), tightened, warmth)
        if self.spending.prices:
            order = self.spending.preferred(order, tried)
        return [(replica.id, tightened.get(replica.id, replica.slots)) for replica in order]

    def engine_failed(self, replica: Replica, failure: Exception) -> bool:
        """Whether it is surely the replica's fault, which is noted: it took no connection. All else may be the request's."""
        is_certain = isinstance(failure, EngineUnreachable) and not isinstance(failure, EngineHungUp)
        if is_certain:
            self.readiness.called(replica.id, failure)
        if isinstance(failure, EngineUnreachable):
            self.prefixes.forget(replica.id)  # its process ended
        self.metrics.engine_fault(replica.id, type(failure).__name__)
        self.log.warning("engine_fault", replica=replica.id, kind=type(failure).__name__, why=str(failure)[:300])
        return is_certain


@asynccontextmanager
async def open_house(settings: Settings) -> AsyncIterator[House]:
    """What depends on something is opened after it and closed before it. Valkey, PostgreSQL and engines may come later.

    Raises: InvalidFleet, CatalogueWrong, ModelUnknown for a pool or an accepted model that the catalogue lacks, DatabaseUrlWrong,
    ValueError for a wrong `REDIS_URL` or proxy network.
    """
    async with AsyncExitStack() as stack:
        record = Reader(settings.database_url.get_secret_value(), connections=2)
        await record.open()
        stack.push_async_callback(record.close)
        clock = Clock(settings.clock_offset_ms)
        house = _build(settings, clock, await _source(stack, settings), await _keyring(stack, settings, clock), record)
        stack.callback(house.log.flush)
        await house.valkey.start()
        stack.push_async_callback(house.valkey.close)
        await house.gate.start()
        stack.push_async_callback(house.gate.close)
        stack.push_async_callback(house.queue.close)
        stack.push_async_callback(house.engines.close)
        _keep_menu(house)
        following = _following(house)
        await following.once()
        for running in (
            house.queue.beat(),
            following.run(house.valkey, clock, house.queue),
            discover(house.roster),
            house.spending.run(record),
            watch(house.engines, house.roster, house.readiness, house.capacity),
            house.standings.tell(),
            follow_plans(house.queue, record, settings.queue_depth, settings.queue_seconds),
        ):
            stack.push_async_callback(_cancel, asyncio.create_task(running))
        _watch_gauges(house)
        yield house


def _build(settings: Settings, clock: Clock, source: Source, keyring: Keyring, record: Reader) -> House:
    redis_url = settings.redis_url.get_secret_value()
    valkey = Valkey(redis_url, settings.valkey_timeout_ms)
    fleet = Fleet.load(settings.fleet_file) if settings.fleet_file else Fleet(())
    catalogue, log = Catalogue.load(), Log(settings.log_level, gateway=settings.gateway_id)
    prefixes = Prefixes()
    readiness = Readiness(fell=prefixes.forget)
    roster = Roster(fleet, readiness.unseen)
    # The first byte has a limit of its own where an answer is streamed (api/delivery).
    patience = Patience(first_byte=settings.total_seconds + 5, between_bytes=settings.stream_idle_seconds)
    return House(
        settings=settings,
        clock=clock,
        log=log,
        metrics=Metrics(),
        drain=Drain(),
        valkey=valkey,
        gate=Gate(valkey, clock, source, gateway=settings.gateway_id, shards=settings.shards, lease_ms=settings.lease_ms),
        keyring=keyring,
        catalogue=catalogue,
        menu=_menu(catalogue, roster, settings.accepted_models, log),
        roster=roster,
        queue=Queue(
            valkey,
            BlockingWakes(redis_url),
            settings.gateway_id,
            unreachable=ValkeyUnavailable,
            lease_ms=settings.lease_ms,
            classes=classes_of((), settings.queue_depth, settings.queue_seconds),
        ),
        engines=EngineClient(patience),
        readiness=readiness,
        prefixes=prefixes,
        fetcher=_fetcher(settings),
        capacity=Capacity(),
        standings=Standings(valkey, settings.shards),
        trusted_proxies=networks(settings.trusted_proxies),
        seal=Seal(settings.key_pepper.get_secret_value()),
        salts=Salts(settings.key_pepper.get_secret_value(), shared=fleet.share_prefixes),
        loops=Loops(settings.loop_errors),
        intake=Intake(),
        record=record,
        spending=Spending(fleet.replicas, clock.now_ms),
    )


def _menu(catalogue: Catalogue, roster: Roster, accepted: Sequence[str], log: Log) -> Menu:
    """Less the models whose licence an admin has yet to accept: their replicas get no calls."""
    hidden = catalogue.hidden(accepted)
    pools, dedicated = shared_pools(roster.replicas), dedicated_pools(roster.replicas)
    for model_id in sorted(hidden.intersection(pools.keys() | {model_id for _, model_id in dedicated})):
        log.warning("model_not_accepted", model=model_id, setting="FAREGATE_ACCEPTED_MODELS")
    return Menu(
        catalogue,
        {model_id: replicas for model_id, replicas in pools.items() if model_id not in hidden},
        {key: replicas for key, replicas in dedicated.items() if key[1] not in hidden},
        roster.open,
    )


def _keep_menu(house: House) -> None:
    """Whenever replicas have come or gone, it is written anew; calls that wait see in their pools who may take them."""

    def write() -> None:
        house.menu = _menu(house.catalogue, house.roster, house.settings.accepted_models, house.log)
        _watch_fleet(house)

    house.roster.listen(write)


def _following(house: House) -> Following:
    settings = house.settings
    folder = Path(settings.fleet_file).parent if settings.fleet_file else Path()
    return Following(
        house.roster, house.readiness, house.record, house.catalogue.knows,
        gateway=settings.gateway_id, folder=folder, log=house.log,
    )  # fmt: skip


def _fetcher(settings: Settings) -> Fetcher | None:
    if not settings.fetch_images:
        return None
    return Fetcher(Policy.of(settings.fetch_allowed), bytes_max=settings.fetch_bytes, seconds=settings.fetch_seconds)


async def _source(stack: AsyncExitStack, settings: Settings) -> Source:
    record = RecordSource(settings.database_url.get_secret_value())
    await record.open()
    stack.push_async_callback(record.close)

    async def read(account: str, key: str, day: int, candidates: Sequence[str]) -> Recorded:
        try:
            return await record(account, key, day, candidates)
        except (RecordUnavailable, AccountUnknown) as error:
            raise SourceUnavailable(str(error)) from error

    return read


async def _keyring(stack: AsyncExitStack, settings: Settings, clock: Clock) -> Keyring:
    store = KeyStore(settings.database_url.get_secret_value(), grace_days=settings.grace_days)
    await store.open()
    stack.push_async_callback(store.close)
    return Keyring(store, settings.key_pepper.get_secret_value(), now_ms=clock.now_ms)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _watch_gauges(house: House) -> None:
    """Read when the metrics page is asked for; nothing on the paid path."""
    outbox, metrics = house.gate.outbox, house.metrics
    metrics.gauge("faregate_outbox_unacknowledged", "Settles that Valkey has not acknowledged", lambda: outbox.unacknowledged)
    metrics.gauge("faregate_outbox_kept", "Events kept until the ledger has them", lambda: outbox.kept)
    metrics.gauge("faregate_outbox_forgotten", "Events let go before the ledger had them", lambda: outbox.forgotten)
    metrics.gauge("faregate_late_settles", "Posted after the lease was swept: the house bears it", lambda: outbox.late)
    once = house.gate.once
    metrics.gauge("faregate_replays", "Answers given again to their Idempotency-Key", lambda: once.replays.given)
    metrics.gauge("faregate_answers_not_kept", "Answers too large to keep for their Idempotency-Key", lambda: once.unkept)
    metrics.gauge("faregate_valkey_connected", "1 while Valkey answers", lambda: float(house.valkey.connected))
    metrics.gauge("faregate_valkey_timeouts", "Connections given up for silence", lambda: house.valkey.timeouts)
    metrics.gauge("faregate_epochs", "Times that Valkey lost its memory, by shard", lambda: house.gate.leases.epochs)
    metrics.gauge("faregate_holds_swept", "Holds of dead gateways that this one ended", lambda: house.gate.sweeper.swept)
    metrics.gauge("faregate_engine_connections", "Sockets to engines", lambda: house.engines.open_connections)
    _watch_fleet(house)


def _watch_fleet(house: House) -> None:
    metrics = house.metrics
    for pool in house.menu.pool_names():
        metrics.pool_gauge("faregate_calls_running", pool, partial(house.queue.running, pool))
        metrics.pool_gauge("faregate_calls_waiting", pool, partial(house.queue.waiting, pool))
        for name in CLASSES:
            metrics.class_waiting(pool, name, partial(_waiting_of, house, pool, name))
    metrics.replicas_are({replica.id for replica in house.roster.replicas})
    for replica in house.roster.replicas:
        metrics.replica_gauge("faregate_replica_cap", replica.id, partial(house.capacity.cap, replica))
        metrics.replica_gauge("faregate_replica_report_age_seconds", replica.id, partial(house.capacity.report_age, replica))


def _waiting_of(house: House, pool: str, class_: str) -> float:
    return house.queue.waiting_by_class(pool)[class_]
