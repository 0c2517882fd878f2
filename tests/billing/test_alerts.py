"""Alerts in the record: each threshold once a day, the highest told, and each handed out to one worker until it is done."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from billing import alerts
from billing.accounts import create_account
from billing.alert_targets import set_target
from billing.alerts import TAKEN_SECONDS, TRY_AGAIN_SECONDS, Due, delivered, failed, note, reached, take_due
from billing.database import open_engine
from billing.seed import seed

Connection = psycopg.AsyncConnection[TupleRow]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
TODAY = NOW.date()


@pytest.mark.parametrize(
    ("used", "quota", "thresholds"),
    [
        (0, 60, []),
        (29, 60, []),
        (30, 60, [50]),
        (47, 60, [50]),
        (48, 60, [50, 80]),
        (59, 60, [50, 80]),
        (60, 60, [50, 80, 100]),
        (61, 60, [50, 80, 100]),
        (1, 1, [50, 80, 100]),
        (2, 3, [50]),
        (5, None, []),
        (0, 0, []),
        (10**12, 10**12, [50, 80, 100]),
    ],
)
def test_a_threshold_is_reached_when_so_much_of_the_quota_is_used(used: int, quota: int | None, thresholds: list[int]) -> None:
    assert reached(used, quota) == thresholds


@pytest.fixture
def acme(database_url: str) -> UUID:
    """An account that has named an address."""
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        made = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="test")
        set_target(connection, made.id, "https://hooks.example/", salt_bytes=16, actor="test")
    engine.dispose()
    return made.id


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as opened:
        yield opened


async def reach(connection: Connection, account: UUID, used: int, *, quota: int = 60, day: date = TODAY) -> int:
    return await note(connection, {account: used}, {account: quota}, day, NOW)


async def due(connection: Connection, at: datetime = NOW) -> list[Due]:
    return await take_due(connection, at, limit=16)


async def test_each_threshold_is_noted_once_a_day_and_told_one_by_one(connection: Connection, acme: UUID) -> None:
    told = []
    for used, new in ((29, 0), (30, 1), (31, 0), (50, 1), (60, 1), (60, 0)):
        assert await reach(connection, acme, used) == new
        told += [(one.threshold, one.used) for one in await due(connection)]
    assert told == [(50, 30), (80, 50), (100, 60)]
    assert await reach(connection, acme, 30, day=TODAY + timedelta(days=1)) == 1


async def test_of_several_reached_at_once_the_highest_is_told(connection: Connection, acme: UUID) -> None:
    assert await reach(connection, acme, 50) == 2
    assert [one.threshold for one in await due(connection)] == [80]
    assert await due(connection, NOW + timedelta(days=1)) != []  # nobody said that it was delivered
    assert await reach(connection, acme, 60) == 1


async def test_after_an_upgrade_what_was_told_is_not_told_again(connection: Connection, acme: UUID) -> None:
    await reach(connection, acme, 60)
    await due(connection)
    assert await reach(connection, acme, 900, quota=1000) == 0


async def test_a_delivered_one_is_over_and_one_that_nobody_finished_comes_back(connection: Connection, acme: UUID) -> None:
    await reach(connection, acme, 30)
    [taken] = await due(connection)
    assert (taken.account_name, taken.url, taken.tries, len(taken.salt)) == ("acme", "https://hooks.example/", 1, 16)
    assert await due(connection, NOW + timedelta(seconds=TAKEN_SECONDS - 1)) == []
    [again] = await due(connection, NOW + timedelta(seconds=TAKEN_SECONDS))
    assert (again.id, again.tries) == (taken.id, 2)
    await delivered(connection, again, NOW)
    await failed(connection, taken, NOW, "the worker before, which wakes up late")
    assert await due(connection, NOW + timedelta(days=9)) == []


async def test_it_is_tried_later_and_later_and_then_given_up_with_its_reason(connection: Connection, acme: UUID) -> None:
    await reach(connection, acme, 30)
    at, waits = NOW, []
    while taken := await due(connection, at):
        await failed(connection, taken[0], at, "its server answered with status 500" + "x" * 1000)
        cursor = await connection.execute("SELECT next_try_at, length(problem) FROM alerts")
        row = await cursor.fetchone()
        assert row is not None
        assert row[1] == 300
        waits.append(row[0] and (row[0] - at).total_seconds())
        at = row[0] or at + timedelta(days=9)
    assert waits == [*TRY_AGAIN_SECONDS, None]


async def test_two_workers_take_different_ones(connection: Connection, acme: UUID, database_url: str) -> None:
    for day in range(4):
        await reach(connection, acme, 30, day=TODAY + timedelta(days=day))
    async with await psycopg.AsyncConnection.connect(database_url) as other, other.transaction():
        theirs = await take_due(other, NOW, limit=2)
        ours = await due(connection)
    assert len({one.id for one in [*theirs, *ours]}) == 4


async def test_who_has_named_no_address_is_noted_and_not_told(connection: Connection, acme: UUID) -> None:
    await connection.execute("DELETE FROM alert_targets")
    await reach(connection, acme, 30)
    assert await due(connection) == []


async def test_an_address_that_was_taken_back_gets_nothing_more(connection: Connection, acme: UUID) -> None:
    await reach(connection, acme, 30)
    await connection.execute("DELETE FROM alert_targets")
    assert await due(connection) == []
    assert await due(connection, NOW + timedelta(days=1)) == []


async def test_quotas_are_those_of_the_plans_and_none_where_there_is_none(connection: Connection, acme: UUID) -> None:
    assert await alerts.quotas_of(connection, [acme], datetime.now(UTC), 7) == {acme: 60}
    await connection.execute("UPDATE accounts SET plan_code = 'enterprise'")
    assert await alerts.quotas_of(connection, [acme], datetime.now(UTC), 7) == {}
