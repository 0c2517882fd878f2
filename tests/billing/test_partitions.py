"""Partitions come and go while the ledger is written: no insert waits, and what was cut off on the way is finished."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.rows import TupleRow

from billing.days import DAY_MS, date_of
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.partitions import drop_partitions_before, existing_days, make_partitions
from billing.reconcile import reconcile
from tests.billing.events import event, fields

NOW = 1_796_000_000_000
TODAY = NOW // DAY_MS
Connection = psycopg.AsyncConnection[TupleRow]


async def connect(database_url: str) -> Connection:
    return await psycopg.AsyncConnection.connect(database_url, autocommit=True, options="-c statement_timeout=20s")


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """With three days of two rows each."""
    async with await connect(database_url) as opened:
        await make_partitions(opened, range(TODAY - 2, TODAY + 1))
        for day in range(TODAY - 2, TODAY + 1):
            await write(opened, day, 2)
        yield opened


async def write(connection: Connection, day: int, rows: int = 1) -> None:
    entries = [fields(event(day * DAY_MS + 1000 + number)) for number in range(rows)]
    found = [Placed(parse(entry, range(TODAY - 9, TODAY + 9)), 0, Position("n", "1-0"), entry) for entry in entries]
    async with connection.transaction():
        done = await record(connection, found, [], [])
    assert (done.inserted, done.rejected) == (rows, 0)


async def tables(connection: Connection) -> list[str]:
    cursor = await connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'requests\\_%' ORDER BY 1"
    )
    return [name for (name,) in await cursor.fetchall()]


def named(day: int) -> str:
    return f"requests_{date_of(day):%Y%m%d}"


@contextlib.asynccontextmanager
async def a_reader(database_url: str) -> AsyncIterator[None]:
    """A transaction that has read the whole ledger and does not end."""
    async with await connect(database_url) as other, other.transaction():
        await other.execute("SELECT count(*) FROM requests")
        yield


async def test_what_is_over_is_gone_and_its_roll_ups_stay(connection: Connection) -> None:
    assert await drop_partitions_before(connection, TODAY) == [date_of(TODAY - 2), date_of(TODAY - 1)]
    assert await tables(connection) == [named(TODAY)]
    found = await reconcile(connection)
    assert (found.days, found.rows, found.differences) == ([date_of(TODAY)], 2, [])
    cursor = await connection.execute("SELECT count(*) FROM usage_daily")
    assert await cursor.fetchone() == (3,)
    assert await drop_partitions_before(connection, TODAY) == []


async def test_writers_go_on_while_retention_waits_for_a_reader(connection: Connection, database_url: str) -> None:
    async with await connect(database_url) as writer:
        await writer.execute("SET lock_timeout = '100ms'")  # whoever waits longer fails the test
        async with a_reader(database_url):
            dropping = asyncio.create_task(drop_partitions_before(connection, TODAY))
            for _ in range(20):
                await write(writer, TODAY)
                await asyncio.sleep(0.01)
            assert not dropping.done()
        assert await dropping == [date_of(TODAY - 2), date_of(TODAY - 1)]
        found = await reconcile(writer)
        assert (found.rows, found.differences) == (22, [])


async def test_a_reader_that_stays_is_given_way_and_the_next_turn_ends_what_was_begun(
    connection: Connection, database_url: str
) -> None:
    async with a_reader(database_url):
        assert await drop_partitions_before(connection, TODAY, wait_seconds=0.1) == []
        assert await existing_days(connection) == {date_of(TODAY - 1), date_of(TODAY)}  # the first is on its way out
        found = await reconcile(connection)
        assert (found.rows, found.differences) == (4, [])
    assert await drop_partitions_before(connection, TODAY) == [date_of(TODAY - 2), date_of(TODAY - 1)]
    assert await tables(connection) == [named(TODAY)]


async def test_a_worker_that_died_between_detaching_and_dropping_leaves_nothing(connection: Connection) -> None:
    await connection.execute(f"ALTER TABLE requests DETACH PARTITION {named(TODAY - 2)} CONCURRENTLY".encode())
    assert await drop_partitions_before(connection, TODAY - 1) == [date_of(TODAY - 2)]
    assert await tables(connection) == [named(TODAY - 1), named(TODAY)]


async def test_a_detached_day_that_is_wanted_again_comes_back_with_its_rows(connection: Connection) -> None:
    await connection.execute(f"ALTER TABLE requests DETACH PARTITION {named(TODAY - 2)} CONCURRENTLY".encode())
    await make_partitions(connection, [TODAY - 2])
    await write(connection, TODAY - 2)
    found = await reconcile(connection)
    assert (found.rows, found.differences) == (7, [])


async def test_of_two_workers_one_takes_away(connection: Connection, database_url: str) -> None:
    async with await connect(database_url) as other:
        both = await asyncio.gather(drop_partitions_before(connection, TODAY), drop_partitions_before(other, TODAY))
    assert sorted(map(len, both)) == [0, 2]
    assert await tables(connection) == [named(TODAY)]


async def test_a_partition_is_made_while_others_read_and_write(connection: Connection, database_url: str) -> None:
    async with a_reader(database_url), await connect(database_url) as writer, writer.transaction():
        await write(writer, TODAY)  # and not committed yet
        await connection.execute("SET lock_timeout = '100ms'")
        await make_partitions(connection, [TODAY + 1, TODAY + 2])
        await write(writer, TODAY + 1)
    assert {date_of(TODAY + 1), date_of(TODAY + 2)} <= await existing_days(connection)


async def test_two_workers_make_a_partition_once(connection: Connection, database_url: str) -> None:
    async with await connect(database_url) as other:
        await asyncio.gather(make_partitions(connection, [TODAY + 1]), make_partitions(other, [TODAY + 1]))
    assert date_of(TODAY + 1) in await existing_days(connection)
