"""What is measured of a large ledger: pages, statements, the drain, the proof, and a day that leaves while others write."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from uuid import UUID

import psycopg
from redis.asyncio import Redis
from sqlalchemy import Connection as Pages

from billing.days import EPOCH
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.overview import days_of_all, heaviest, monthly_revenue
from billing.partitions import drop_partitions_before, make_partitions
from billing.recent import latest_calls
from billing.statements import RECEIPTS, statement_rows
from billing.usage import usage_by_day
from gateway.clock import Clock
from gateway.limits.shard import SHARDS, Shard, shard_of
from gateway.metering import StreamDrain
from gateway.reconciliation import prove
from tests.benchmarks.ledger.town import Connection, Size
from tests.billing.events import event, fields

# A page is asked for by so many accounts, from the busiest to the one that hardly calls.
ASKING = 50
EVENTS_AT_ONCE = 2000
# What a worker commits at once under some load.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` of `what`, in words."""

    what: str
    value: str
    is_goal: bool = True


def pages(connection: Pages, accounts: Sequence[UUID], size: Size) -> list[Figure]:
    first, now = size.last - timedelta(days=29), datetime.now(UTC) + timedelta(days=1)
    asked = accounts[:: max(1, len(accounts) // ASKING)]

    def account_page(account: UUID) -> None:
        usage_by_day(connection, account, first, size.last)
        latest_calls(connection, account, now)

    def admin_page(_: UUID) -> None:
        days_of_all(connection, first, size.last)
        heaviest(connection, first, size.last)
        monthly_revenue(connection)

    def first_receipt(account: UUID) -> None:
        rows = statement_rows(connection, RECEIPTS, account, first, size.last)
        next(rows, None)
        rows.close()  # type: ignore[attr-defined]  # a generator's

    busiest, began = accounts[0], time.perf_counter()
    receipts = sum(1 for _ in statement_rows(connection, RECEIPTS, busiest, first, size.last))
    a_second = receipts / (time.perf_counter() - began)
    return [
        Figure("account page: 30 days of use and the last 50 calls", _times(account_page, asked)),
        Figure("admin page: 30 days of all accounts, the ten heaviest, revenue", _times(admin_page, asked[:20])),
        Figure("statement of 30 days: the first receipt", _times(first_receipt, asked)),
        Figure(f"statement of the busiest account: {receipts:,} receipts", f"{a_second:,.0f} a second"),
    ]


async def drained(connection: Connection, valkey: Redis, accounts: Sequence[UUID], events: int) -> Figure:
    """Events of many accounts in all shards, from the streams to the ledger."""
    for shard in range(SHARDS):
        await valkey.hset(Shard(shard, "").epoch, "nonce", "bench")
    now_ms = Clock().now_ms()
    names = [str(account) for account in accounts]
    for start in range(0, events, EVENTS_AT_ONCE):
        pipeline = valkey.pipeline(transaction=False)
        for number in range(start, min(events, start + EVENTS_AT_ONCE)):
            account = names[number * number % len(names)]
            entry = fields(event(now_ms + number % 1000, account=account, model=f"model-{number % 5}"))
            pipeline.xadd(Shard(shard_of(account), "").events, entry)
        await pipeline.execute()
    drain = StreamDrain(valkey, Clock(), shards=SHARDS, retention_days=400)
    began, done = time.perf_counter(), 0
    while step := await drain.step(connection):
        done += step
    return Figure(
        f"the worker's drain: {done:,} events of all shards", f"{done / (time.perf_counter() - began):,.0f} rows a second"
    )


async def proved(connection: Connection, valkey: Redis) -> Figure:
    proof = await prove(connection, valkey, datetime.now(UTC), shards=SHARDS)
    if proof.findings:
        raise SystemExit(f"the ledger does not add up, so nothing of it is worth measuring: {proof.findings[0].what}")
    seconds = proof.took_ms / 1000
    rate = proof.rows / max(seconds, 0.001)
    return Figure(
        f"reconciliation of {proof.rows:,} rows in {len(proof.days)} days", f"{seconds:.1f} s, {rate:,.0f} rows a second"
    )


async def retention(connection: Connection, url: str, size: Size) -> list[Figure]:
    """The oldest day leaves while another connection commits batch after batch; its slowest commit beside one without that."""
    oldest = size.last - timedelta(days=size.days - 1)
    async with _writing(url) as slowest:
        await asyncio.sleep(3)
        alone = slowest()

    async def leave() -> None:
        await drop_partitions_before(connection, (oldest - EPOCH).days + 1)

    async def come() -> None:
        await make_partitions(connection, [(size.last - EPOCH).days + 1])

    went, while_it_went = await _beside(url, leave)
    came, while_it_came = await _beside(url, come)
    rows = size.rows // size.days
    return [
        Figure(f"commits of {BATCH} rows, one after the other: the slowest of 3 s", f"{alone * 1000:.0f} ms", is_goal=False),
        Figure(f"a day of {rows:,} rows leaves; the slowest commit meanwhile", f"{went:.2f} s; {while_it_went * 1000:.0f} ms"),
        Figure("a new day is made; the slowest commit meanwhile", f"{came:.2f} s; {while_it_came * 1000:.0f} ms"),
    ]


async def _beside(url: str, work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Seconds that the work took, and the slowest commit that ran beside it or just after it."""
    async with _writing(url) as slowest:
        began = time.perf_counter()
        await work()
        took = time.perf_counter() - began
        await asyncio.sleep(0.5)
        return took, slowest()


@asynccontextmanager
async def _writing(url: str) -> AsyncIterator[Callable[[], float]]:
    """Commits without a pause; tells the slowest, in seconds."""
    times = [0.0]

    async def write() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            while True:
                found = _batch()
                began = time.perf_counter()
                async with connection.transaction():
                    await record(connection, found, [], [])
                times.append(time.perf_counter() - began)

    writing = asyncio.create_task(write())
    try:
        await asyncio.wait([writing], timeout=0.5)  # until it is warm
        times[:] = [0.0]
        yield lambda: max(times)
    finally:
        writing.cancel()
        await asyncio.wait([writing])


def _batch() -> list[Placed]:
    now_ms = Clock().now_ms()
    entries = [fields(event(now_ms)) for _ in range(BATCH)]
    today = Clock().today()
    return [Placed(parse(entry, range(today - 1, today + 2)), 0, Position("n", "1-0"), entry) for entry in entries]


def _times(ask: Callable[[UUID], None], accounts: Sequence[UUID]) -> str:
    for account in islice(accounts, 3):
        ask(account)
    times = []
    for account in accounts:
        began = time.perf_counter()
        ask(account)
        times.append((time.perf_counter() - began) * 1000)
    times.sort()
    return f"{times[len(times) // 2]:.1f} ms, at most {times[-1]:.1f} ms"


def today() -> date:
    return datetime.now(UTC).date()
