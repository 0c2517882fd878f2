"""The worker: writes the ledger, pushes changed versions, ends dead gateways' holds, and keeps the partitions; until SIGTERM."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from billing.conninfo import conninfo
from billing.ledger import PositionMoved
from billing.partitions import drop_partitions_before, make_partitions
from billing.staging import STAGED
from gateway import alerting, nightly
from gateway.bumps import push_staged
from gateway.clock import Clock
from gateway.fetch.policy import Policy
from gateway.fetch.post import Poster
from gateway.limits.sweep import Sweeper
from gateway.log import Log
from gateway.metering import DAYS_AHEAD, StreamDrain
from gateway.settings import Settings
from gateway.valkey import Valkey
from gateway.worker_metrics import STATUS_KEY

# What comes within this time is recorded in one commit.
GATHER_SECONDS = 0.1
# With no news for so long a loop looks for itself: news can get lost, with a connection or a server.
LOOK_SECONDS = 0.5
HOUSEKEEPING_SECONDS = 600.0
STATUS_SECONDS = 1.0
STATUS_LIFE_SECONDS = 60
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
# A disk or a lock that makes a statement this slow is an outage; the events wait in the stream.
STATEMENT_TIMEOUT_MS = 60_000

# InternalError: among others, a server that has just become a replica refuses writes with it.
_OUTAGES = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, RedisError, OSError)

Session = psycopg.AsyncConnection[TupleRow]
News = Callable[[Session], Awaitable[None]]


def run(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; what is in the streams by then is still recorded, if that takes no longer than the drain time."""
    asyncio.run(_run(settings))


def redis_client(settings: Settings) -> Redis:
    """redis-py, for what is not on the paid path. It does not retry by itself: whoever asks has a loop of its own."""
    client: Redis = Redis.from_url(
        settings.redis_url.get_secret_value(), socket_timeout=2.0, socket_connect_timeout=1.0, retry=Retry(NoBackoff(), 0)
    )
    return client


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log = Log(settings.log_level, worker=settings.gateway_id)
    log.info("worker_started", shards=settings.shards)
    async with contextlib.AsyncExitStack() as leaving:
        clock = Clock(settings.clock_offset_ms)
        client = await leaving.enter_async_context(redis_client(settings))
        valkey = Valkey(settings.redis_url.get_secret_value(), timeout_ms=max(1000, settings.valkey_timeout_ms))
        await valkey.start()
        leaving.push_async_callback(valkey.close)
        sweeper = Sweeper(valkey, clock, gateway=settings.gateway_id, shards=settings.shards, lease_ms=settings.lease_ms)
        sweeper.start()
        leaving.push_async_callback(sweeper.close)
        worker = Worker(settings, client, clock, log)
        await worker.work_until(stop)
    log.info("worker_stopped")
    log.flush()


class Worker:
    """The loops over one PostgreSQL connection each, that outlive the outages of either server."""

    def __init__(self, settings: Settings, valkey: Redis, clock: Clock, log: Log) -> None:
        self._settings, self._valkey, self._clock, self._log = settings, valkey, clock, log
        self._conninfo = conninfo(settings.database_url.get_secret_value())
        self.drain = StreamDrain(valkey, clock, shards=settings.shards, retention_days=settings.retention_days)
        self._nightly = nightly.Nightly(settings, valkey, clock, log)

    async def work_until(self, stop: asyncio.Event) -> None:
        """Raises what no loop was made to outlive: then all of them stop, and a supervisor can start the worker anew."""
        loops = [
            asyncio.create_task(self._keep("drain", self._drain, GATHER_SECONDS, stop, news=self._events)),
            asyncio.create_task(self._keep("bumps", self._push, 0.0, stop, news=self._jobs)),
            asyncio.create_task(self._keep("partitions", self._keep_partitions, HOUSEKEEPING_SECONDS, stop)),
            asyncio.create_task(self._keep("nightly", self._nightly.turn, nightly.LOOK_SECONDS, stop)),
            asyncio.create_task(self._keep_publishing(stop)),
            *self._keep_alerting(stop),
            *self._keep_selling(stop),
        ]
        await asyncio.wait([*loops, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        _, late = await asyncio.wait(loops, timeout=self._settings.drain_seconds)
        for task in late:
            task.cancel()
        for ended in await asyncio.gather(*loops, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    async def _keep(
        self, name: str, turn: Callable[[Session], Awaitable[int]], idle: float, stop: asyncio.Event, *, news: News | None = None
    ) -> None:
        """`turn` again and again, at once while it finds work, else after `idle` seconds and `news`; after SIGTERM until it finds
        none or can't."""
        failures = 0
        while not (stop.is_set() and failures):
            try:
                async with await self._connect() as connection:
                    while await turn(connection) or not await _rested(stop, idle, connection, news):
                        failures = 0
                    while await turn(connection):  # what came since
                        pass
                    return
            except PositionMoved:
                self._log.info("another_worker", loop=name)
                await _is_set_within(stop, GATHER_SECONDS)
            except _OUTAGES as outage:
                self._log.warning("worker_waits", loop=name, why=type(outage).__name__, says=str(outage)[:200])
                await _is_set_within(stop, BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)])
                failures += 1

    def _keep_alerting(self, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        poster = Poster(Policy.of(self._settings.alerts_allowed))
        pepper, grace_days = self._settings.key_pepper.get_secret_value(), self._settings.grace_days
        alerts = alerting.Alerting(pepper, poster, self._clock, self._log, grace_days=grace_days)
        return [
            asyncio.create_task(self._keep("alerts", alerts.notice, alerting.NOTICE_SECONDS, stop)),
            asyncio.create_task(self._keep("alert_posts", alerts.deliver, alerting.DELIVER_SECONDS, stop)),
        ]

    def _keep_selling(self, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        """Nothing is sold without a key of Stripe's."""
        if self._settings.stripe_key is None:
            return []
        # Here, as its SDK costs every command that knows the worker a third of a second.
        from gateway.stripe_events import EVENTS_LOOK_SECONDS, SWEEP_LOOK_SECONDS, StripeEvents

        stripe = StripeEvents(self._settings, self._valkey, self._clock, self._log)
        return [
            asyncio.create_task(self._keep("stripe", stripe.apply, EVENTS_LOOK_SECONDS, stop)),
            asyncio.create_task(self._keep("stripe_sweep", stripe.sweep, SWEEP_LOOK_SECONDS, stop)),
        ]

    async def _keep_publishing(self, stop: asyncio.Event) -> None:
        """Without PostgreSQL too: that is when the backlog matters."""
        while not await _is_set_within(stop, STATUS_SECONDS):
            with contextlib.suppress(RedisError, OSError):
                await self._publish()

    async def _connect(self) -> Session:
        return await psycopg.AsyncConnection.connect(
            self._conninfo,
            autocommit=True,
            connect_timeout=5,
            prepare_threshold=None,
            options=f"-c statement_timeout={STATEMENT_TIMEOUT_MS}",
        )

    async def _events(self, _: Session) -> None:
        await self.drain.news(LOOK_SECONDS)

    async def _jobs(self, connection: Session) -> None:
        await connection.execute(f"LISTEN {STAGED}")
        async for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
            return

    async def _drain(self, connection: Session) -> int:
        committed = await self.drain.step(connection)
        await self.drain.trim()
        return committed

    async def _push(self, connection: Session) -> int:
        return await push_staged(connection, self._valkey, self._settings.shards)

    async def _keep_partitions(self, connection: Session) -> int:
        today = self._clock.today()
        await make_partitions(connection, range(today - 1, today + DAYS_AHEAD + 1))
        dropped = await drop_partitions_before(connection, today - self._settings.retention_days)
        if dropped:
            self._log.info("partitions_dropped", days=[day.isoformat() for day in dropped])
        return 0

    async def _publish(self) -> None:
        """What the worker has done and what waits, for the console and `faregate ledger status`."""
        await self._keep_time()
        entries, waiting_ms = await self.drain.backlog()
        tally = self.drain.tally
        facts: dict[Any, str | int] = {
            "worker": self._settings.gateway_id,
            "at_ms": self._clock.now_ms() - self._clock.offset_ms,
            "stream_entries": entries,
            "oldest_waiting_ms": waiting_ms,
            "inserted": tally.inserted,
            "repeated": tally.repeated,
            "late_settles": tally.late,
            "rejected": tally.rejected,
        }
        pipeline = self._valkey.pipeline(transaction=False)
        pipeline.hset(STATUS_KEY, mapping=facts)
        pipeline.expire(STATUS_KEY, STATUS_LIFE_SECONDS)
        await pipeline.execute()

    async def _keep_time(self) -> None:
        before = asyncio.get_running_loop().time()
        seconds, microseconds = await self._valkey.time()
        round_trip_ms = round((asyncio.get_running_loop().time() - before) * 1000)
        self._clock.synchronise(int(seconds) * 1000 + int(microseconds) // 1000, round_trip_ms)


async def _rested(stop: asyncio.Event, idle: float, connection: Session, news: News | None) -> bool:
    """Whether `stop` was set before `idle` seconds were over and the news came. Raises what the news raise."""
    if await _is_set_within(stop, idle) or news is None:
        return stop.is_set()
    told, stopped = asyncio.ensure_future(news(connection)), asyncio.ensure_future(stop.wait())
    await asyncio.wait((told, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    told.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await told
    return stop.is_set()


async def _is_set_within(stop: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()
