"""The nightly proof: at its hour, once an installation, kept, logged where it differs, and on the gateways' metrics pages."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import psycopg
import pytest
from psycopg.rows import TupleRow
from pydantic import SecretStr
from redis.asyncio import Redis

from billing.days import DAY_MS
from billing.partitions import make_partitions
from billing.proofs import latest
from gateway.clock import Clock
from gateway.log import Log
from gateway.nightly import HOUR, Nightly
from gateway.settings import Settings
from gateway.valkey import Valkey
from gateway.worker_metrics import PROOF_KEY, worker_page

Connection = psycopg.AsyncConnection[TupleRow]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
async def valkey(valkey_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(valkey_url) as client:
        yield client


def clock_at(hour: int, minute: int = 0) -> Clock:
    """A clock that shows so late, today."""
    now = datetime.now(UTC)
    then = now.replace(hour=hour, minute=minute, second=0)
    return Clock(round((then - now) / timedelta(milliseconds=1)))


def nightly(valkey: Redis, clock: Clock, log: Log | None = None) -> Nightly:
    """Of an installation that sells nothing."""
    settings = Settings(database_url=SecretStr("unused"), redis_url=SecretStr("unused"), key_pepper=SecretStr("p" * 32))
    return Nightly(settings, valkey, clock, log or Log("error"))


async def nights(connection: Connection) -> int:
    cursor = await connection.execute("SELECT count(*) FROM reconciliations WHERE night IS NOT NULL")
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def test_it_proves_once_a_night_and_not_before_its_hour(valkey: Redis, connection: Connection) -> None:
    await nightly(valkey, clock_at(HOUR - 1, 59)).turn(connection)
    assert await nights(connection) == 0
    late = nightly(valkey, clock_at(HOUR, 1))
    for _ in range(2):
        await late.turn(connection)
        assert await nights(connection) == 1
    tomorrow = clock_at(HOUR, 1)
    tomorrow.offset_ms += DAY_MS
    await nightly(valkey, tomorrow).turn(connection)
    assert await nights(connection) == 2


async def test_of_two_workers_one_proves(valkey: Redis, connection: Connection, database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        clock = clock_at(HOUR, 1)
        await asyncio.gather(nightly(valkey, clock).turn(connection), nightly(valkey, clock).turn(other))
    assert await nights(connection) == 1


async def test_a_worker_that_dies_while_it_proves_leaves_the_night_to_the_next(
    valkey: Redis, connection: Connection, database_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as dying:
        await dying.execute("SELECT pg_advisory_lock(%s)", (0xFA4E_0DA9,))
        await nightly(valkey, clock_at(HOUR, 1)).turn(connection)
        assert await nights(connection) == 0
    await nightly(valkey, clock_at(HOUR, 1)).turn(connection)
    assert await nights(connection) == 1


async def test_a_difference_is_logged_kept_and_told_to_the_gateways(
    valkey: Redis, connection: Connection, valkey_url: str, tmp_path: Path
) -> None:
    today = Clock().today()
    await make_partitions(connection, [today])
    await connection.execute(
        "INSERT INTO usage_daily VALUES"
        " (gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date, gen_random_uuid(), 'm', 3, 1, 0, 0, 0, 0, 0, 0)"
    )
    with (tmp_path / "log").open("wb") as written:
        await nightly(valkey, clock_at(HOUR, 1), Log(descriptor=written.fileno())).turn(connection)
    [line] = [orjson.loads(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    assert (line["event"], line["level"], line["differences"]) == ("reconciliation_differs", "error", 2)
    assert "the roll-up has 3 fares, the rows add up to 0" in line["found"][0]
    kept = await latest(connection)
    assert kept is not None
    assert (kept.differences, kept.findings[0]["kind"]) == (2, "roll-up")
    told = Valkey(valkey_url)
    await told.start()
    page = (await worker_page(told)).decode()
    assert "faregate_reconcile_differences 2.0" in page
    await valkey.delete(PROOF_KEY)
    assert "faregate_reconcile" not in (await worker_page(told)).decode()
    await nightly(valkey, clock_at(HOUR, 1)).turn(connection)
    assert "faregate_reconcile_differences 2.0" in (await worker_page(told)).decode()
    await told.close()


async def test_the_page_is_there_without_valkey() -> None:
    away = Valkey("redis://127.0.0.1:1")
    assert await worker_page(away) == b""
