"""Adding the ledger up again: equal after any batches, different when a roll-up was touched, and mended on demand."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.rows import TupleRow

from billing.days import DAY_MS, date_of
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.partitions import make_partitions
from billing.reconcile import reconcile, repair
from tests.billing.events import event, fields

NOW = 1_796_000_000_000
TODAY = NOW // DAY_MS
Connection = psycopg.AsyncConnection[TupleRow]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """With a ledger of two days, two models and every verdict."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as opened:
        await make_partitions(opened, [TODAY - 1, TODAY])
        endings = [("posted", "answered"), ("voided", "timed_out"), ("expired", "gateway_died"), ("voided", "left_before_output")]
        for at_ms in (NOW - DAY_MS, NOW):
            batch = [
                fields(event(at_ms + number, model=f"m{number % 2}", prompt_tokens=number or None), *endings[number % 4])
                for number in range(12)
            ]
            found = [Placed(parse(one, range(TODAY - 9, TODAY + 9)), 0, Position("n", "1-0"), one) for one in batch]
            async with opened.transaction():
                await record(opened, found, [], [])
        yield opened


async def test_what_the_ledger_wrote_adds_up(connection: Connection) -> None:
    found = await reconcile(connection)
    assert (found.days, found.rows, found.differences) == ([date_of(TODAY - 1), date_of(TODAY)], 24, [])


@pytest.mark.parametrize(
    ("statement", "differing"),
    [
        ("UPDATE usage_daily SET fares = fares + 1, completion_tokens = 0 WHERE model = 'm0'", {"fares", "completion_tokens"}),
        ("DELETE FROM usage_daily WHERE model = 'm0'", {"posted", "expired", "fares", "prompt_tokens"}),
        ("UPDATE usage_daily SET model = 'other' WHERE model = 'm0'", {"posted", "expired", "fares", "prompt_tokens"}),
    ],
)
async def test_a_roll_up_that_was_touched_is_named_and_mended(
    connection: Connection, statement: str, differing: set[str]
) -> None:
    await connection.execute(statement.encode())
    found = await reconcile(connection)
    assert differing <= {one.what for one in found.differences}
    assert all(one.rolled_up != one.summed for one in found.differences)
    await repair(connection, found)
    assert (await reconcile(connection)).differences == []


async def test_one_day_can_be_asked_for(connection: Connection) -> None:
    await connection.execute("UPDATE usage_daily SET posted = posted + 1 WHERE day = %s", (date_of(TODAY),))
    assert (await reconcile(connection, date_of(TODAY - 1))).differences == []
    assert {one.what for one in (await reconcile(connection, date_of(TODAY))).differences} == {"posted"}


async def test_a_day_whose_rows_were_dropped_keeps_its_roll_up(connection: Connection) -> None:
    await connection.execute("DROP TABLE requests_" + f"{date_of(TODAY - 1):%Y%m%d}")
    found = await reconcile(connection)
    assert (found.days, found.differences) == ([date_of(TODAY)], [])
