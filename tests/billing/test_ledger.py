"""The ledger: a row once, roll-ups by the rows really inserted, positions by compare-and-set, all or nothing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from billing.days import DAY_MS
from billing.ledger import Move, Placed, Position, PositionMoved, Recorded, positions, record
from billing.meter import parse
from billing.partitions import drop_partitions_before, existing_days, make_partitions
from tests.billing.events import ACCOUNT, KEY, event, fields

NOW = 1_796_000_000_000
TODAY = NOW // DAY_MS
Connection = psycopg.AsyncConnection[TupleRow]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as opened:
        await make_partitions(opened, range(TODAY - 1, TODAY + 2))
        yield opened


def placed(usage: dict[str, Any], verdict: str = "posted", reason: str = "answered") -> Placed:
    found = fields(usage, verdict, reason)
    return Placed(parse(found, range(TODAY - 9, TODAY + 9)), 0, Position("n", "1-0"), found)


async def commit(connection: Connection, found: Sequence[Placed], moves: Sequence[Move] = ()) -> Recorded:
    async with connection.transaction():
        return await record(connection, found, [], moves)


async def fetch(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(query.encode())
    return await cursor.fetchall()


async def test_rows_and_roll_ups_move_together(connection: Connection) -> None:
    recorded = await commit(
        connection,
        [
            placed(event(NOW, fare=3)),
            placed(event(NOW + 1, fare=2), "voided", "engine_broke"),
            placed(event(NOW + 2, fare=5), "expired", "gateway_died"),
            placed(event(NOW + 3), "posted", "left_before_output"),
            placed(event(NOW + 4), "voided", "left_before_output"),
            placed(event(NOW + 5, model="other", prompt_tokens=None)),
        ],
    )
    assert recorded == Recorded(inserted=6, repeated=0, late=0, rejected=0)
    query = (
        "SELECT model, fares, posted, voided, expired, hangups, prompt_tokens, completion_tokens FROM usage_daily ORDER BY model"
    )
    assert await fetch(connection, query) == [("m", 4, 2, 2, 1, 2, 50, 15), ("other", 1, 1, 0, 0, 0, 0, 3)]
    assert await fetch(connection, "SELECT count(*), sum(fare) FILTER (WHERE verdict = 'posted') FROM requests") == [(6, 5)]


async def test_a_repeated_event_moves_nothing(connection: Connection) -> None:
    once = placed(event(NOW))
    await commit(connection, [once])
    assert await commit(connection, [once, placed(event(NOW + 1))]) == Recorded(inserted=1, repeated=1, late=0, rejected=0)
    assert await fetch(connection, "SELECT fares, posted FROM usage_daily") == [(2, 2)]


async def test_twice_in_one_batch_is_once_and_the_first_verdict_stands(connection: Connection) -> None:
    usage = event(NOW)
    both = [placed(usage, "expired", "gateway_died"), placed(usage, "posted")]
    assert await commit(connection, both) == Recorded(inserted=1, repeated=1, late=1, rejected=0)
    assert await fetch(connection, "SELECT verdict FROM requests") == [("expired",)]


async def test_a_late_settle_is_counted_and_the_first_row_stands(connection: Connection) -> None:
    usage = event(NOW)
    await commit(connection, [placed(usage, "expired", "gateway_died")])
    assert await commit(connection, [placed(usage, "posted")]) == Recorded(inserted=0, repeated=1, late=1, rejected=0)
    assert await fetch(connection, "SELECT fares, posted, expired FROM usage_daily") == [(0, 0, 1)]


async def test_what_was_stored_is_what_was_sent(connection: Connection) -> None:
    usage = event(NOW, stream=True)
    await commit(connection, [placed(usage)])
    query = """SELECT day - date '1970-01-01', id::text, account_id::text, key_id::text, stream, status,
                      (extract(epoch FROM at) * 1000)::bigint, first_byte_ms, cached_tokens, replica, gateway FROM requests"""
    assert await fetch(connection, query) == [
        (TODAY, usage["id"], ACCOUNT, KEY, True, 200, NOW, 12, 4, "r1", "g1"),
    ]


async def test_a_position_moves_by_compare_and_set_and_the_loser_changes_nothing(connection: Connection) -> None:
    first, second = Position("n", "5-0"), Position("n", "9-1")
    await commit(connection, [], [Move(3, None, first), Move(4, None, first)])
    await commit(connection, [], [Move(3, first, second)])
    for lost in (Move(3, first, Position("n", "6-0")), Move(3, None, first), Move(3, Position("other", "9-1"), first)):
        with pytest.raises(PositionMoved):
            await commit(connection, [placed(event(NOW))], [lost, Move(4, first, second)])
    assert await positions(connection) == {3: second, 4: first}
    assert await fetch(connection, "SELECT count(*) FROM requests") == [(0,)]


async def test_a_row_that_only_the_database_refuses_is_set_aside_and_the_rest_recorded(connection: Connection) -> None:
    bad = placed(event(NOW))
    bad = Placed(bad.row._replace(verdict="maybe"), 7, Position("n", "8-0"), {**bad.fields, b"x": b"\x00\xff"})
    found = [placed(event(NOW + 1)), bad, placed(event(NOW + 2)), placed(event(NOW + 3))]
    assert await commit(connection, found) == Recorded(inserted=3, repeated=0, late=0, rejected=1)
    [(shard, position, problem, text)] = await fetch(
        connection, "SELECT shard, position, problem, fields->>'x' FROM rejected_events"
    )
    assert (shard, position, text) == (7, "8-0", "\\x00\\xff")
    assert "requests_verdict_known" in problem
    assert await fetch(connection, "SELECT posted FROM usage_daily") == [(3,)]


async def test_partitions_are_made_once_and_dropped_whole(connection: Connection) -> None:
    await make_partitions(connection, [TODAY, TODAY + 5])
    assert len(await existing_days(connection)) == 4
    await commit(connection, [placed(event(NOW - DAY_MS)), placed(event(NOW))])
    assert len(await drop_partitions_before(connection, TODAY)) == 1
    assert await fetch(connection, "SELECT count(*) FROM requests") == [(1,)]
    assert await fetch(connection, "SELECT sum(posted)::int FROM usage_daily") == [(2,)]


async def test_two_workers_may_make_the_same_partition_at_once(connection: Connection, database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        await asyncio.gather(make_partitions(connection, [TODAY + 7]), make_partitions(other, [TODAY + 7]))
    assert len(await existing_days(connection)) == 4
