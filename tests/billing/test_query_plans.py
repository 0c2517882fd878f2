"""The questions that pages ask of a large ledger: indexed plans, few partitions, and no sort of more than a page."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Connection, text

from billing import overview
from billing.database import open_engine
from billing.overview import days_of_all, heaviest, monthly_revenue
from billing.recent import DAYS_LOOKED_AT, LATEST, asked, latest_calls
from billing.seed import seed
from billing.usage import usage_by_day
from tests.benchmarks.ledger.town import Size, busiest_account, settle, write_day
from tests.support.services import PostgresServer

TODAY = datetime.now(UTC).date()
SIZE = Size(rows=40_000, days=40, accounts=200, last=TODAY)
FIRST = TODAY - timedelta(days=29)


@pytest.fixture(scope="module")
def ledger(postgres_server: PostgresServer) -> Iterator[tuple[Connection, UUID]]:
    """Forty days of two hundred accounts, and the busiest of these."""
    with postgres_server.database() as url:
        seed(url)
        account = asyncio.run(_fill(url))
        engine = open_engine(url)
        with engine.connect() as connection:
            yield connection, UUID(account)
        engine.dispose()


async def _fill(url: str) -> str:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await settle(connection, SIZE)
        for day in SIZE.each_day():
            await write_day(connection, SIZE, day)
        await connection.execute("VACUUM ANALYZE")
        return await busiest_account(connection)


def nodes(connection: Connection, query: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every step of the plan, as it was run."""
    explained = connection.execute(text(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {query}"), values).scalar_one()
    return list(_walk(explained[0]["Plan"]))


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


def partitions(found: list[dict[str, Any]]) -> set[date]:
    names = {node["Relation Name"] for node in found if node.get("Relation Name", "").startswith("requests_")}
    return {datetime.strptime(name, "requests_%Y%m%d").replace(tzinfo=UTC).date() for name in names}


def indexes(found: list[dict[str, Any]]) -> set[str]:
    return {re.sub(r"_\d{8}_", "_", node["Index Name"]) for node in found if "Index Name" in node}


def sorted_rows(found: list[dict[str, Any]]) -> float:
    """The most rows that any sort took in."""
    return max((child["Actual Rows"] for node in found if "Sort" in node["Node Type"] for child in node["Plans"]), default=0)


def tables_read_whole(found: list[dict[str, Any]]) -> set[str]:
    return {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"} & {"usage_daily", "keys", "accounts"}


def test_the_latest_calls_of_an_account_come_by_an_index_from_two_days(ledger: tuple[Connection, UUID]) -> None:
    connection, account = ledger
    now = datetime.now(UTC) + timedelta(days=1)
    found = nodes(connection, LATEST, asked(account, now - timedelta(days=1), DAYS_LOOKED_AT[0], 50))
    assert partitions(found) == {TODAY, TODAY - timedelta(days=1)}
    assert indexes(found) == {"requests_account_id_at_idx"}
    assert sorted_rows(found) == 0
    assert sum(node["Actual Rows"] for node in found if "Index Name" in node) <= 52


def test_an_account_that_seldom_calls_is_looked_for_in_more_days_and_still_by_the_index(
    ledger: tuple[Connection, UUID],
) -> None:
    connection, account = ledger
    now = datetime.now(UTC)
    found = nodes(connection, LATEST, asked(account, now, DAYS_LOOKED_AT[1], 50))
    assert len(partitions(found)) == 30
    assert (indexes(found), sorted_rows(found)) == ({"requests_account_id_at_idx"}, 0)
    rare = connection.execute(text("SELECT account_id FROM requests GROUP BY 1 HAVING count(*) < 50 LIMIT 1")).scalar_one()
    calls = latest_calls(connection, rare, now + timedelta(days=1))
    assert len(calls) == connection.execute(text("SELECT count(*) FROM requests WHERE account_id = :a"), {"a": rare}).scalar_one()


def test_pages_of_calls_follow_each_other_without_a_gap(ledger: tuple[Connection, UUID]) -> None:
    connection, account = ledger
    before, seen = datetime.now(UTC) + timedelta(days=1), list[UUID]()
    for _ in range(6):
        page = latest_calls(connection, account, before)
        assert len(page) == 50
        seen += [call.id for call in page]
        before = page[-1].at
    expected = text("SELECT id FROM requests WHERE account_id = :a ORDER BY at DESC LIMIT 300")
    assert seen == list(connection.execute(expected, {"a": account}).scalars())


def test_an_accounts_month_is_read_from_its_own_roll_ups(ledger: tuple[Connection, UUID]) -> None:
    connection, account = ledger
    query = (
        "SELECT day, sum(fares) FROM usage_daily WHERE account_id = :account AND day BETWEEN :first AND :last"
        " GROUP BY day ORDER BY day DESC"
    )
    found = nodes(connection, query, {"account": account, "first": FIRST, "last": TODAY})
    assert (indexes(found), tables_read_whole(found)) == ({"usage_daily_pkey"}, set())
    assert sorted_rows(found) <= 30 * 10
    assert len(usage_by_day(connection, account, FIRST, TODAY)) == 30


@pytest.mark.parametrize("query", ["BY_DAY", "BY_ACCOUNT"])
def test_all_accounts_month_is_read_from_roll_ups_alone_and_no_row_of_the_ledger(
    ledger: tuple[Connection, UUID], query: str
) -> None:
    """Four days of forty are asked for, so that an index pays."""
    connection, _ = ledger
    values = {"first": TODAY - timedelta(days=3), "last": TODAY, "limit": 10}
    found = nodes(connection, getattr(overview, query), values)
    assert partitions(found) == set()
    assert "usage_daily_day_idx" in indexes(found)
    assert "usage_daily" not in tables_read_whole(found)


def test_totals_are_what_the_rows_add_up_to(ledger: tuple[Connection, UUID]) -> None:
    connection, account = ledger
    days = days_of_all(connection, FIRST, TODAY)
    assert [day.day for day in days] == [TODAY - timedelta(days=ago) for ago in range(30)]
    assert {day.posted + day.voided + day.expired for day in days} == {1000}
    [most, *_] = heaviest(connection, FIRST, TODAY)
    assert (most.account_id, most.name) == (account, "account-1")
    rows = text("SELECT sum(fare), count(*) FROM requests WHERE account_id = :a AND verdict = 'posted' AND day >= :first")
    fares, calls = connection.execute(rows, {"a": account, "first": FIRST}).one()
    assert (most.fares, most.calls > calls) == (fares, True)


def test_revenue_counts_what_is_paid_for_by_plan_and_currency(ledger: tuple[Connection, UUID]) -> None:
    connection, account = ledger
    assert monthly_revenue(connection) == []
    rows = [("s1", "active", 8000, False), ("s2", "past_due", 8000, False), ("s3", "active", 1, True), ("s4", "unpaid", 1, False)]
    for name, status, cents, paused in rows:
        connection.execute(
            text(
                "INSERT INTO subscriptions (id, account_id, status, plan_code, plan_version, price_id, quantity, currency,"
                " amount_cents, collection_method, current_period_start, current_period_end, cancel_at_period_end, paused,"
                " fetched_at)"
                " VALUES (:id, :account, :status, 'pro', 1, 'p', 1, 'usd', :cents, 'c', now(), now(), false, :paused, now())"
            ),
            {"id": name, "account": account, "status": status, "cents": cents, "paused": paused},
        )
    [pro] = monthly_revenue(connection)
    connection.rollback()
    assert (pro.plan_code, pro.currency, pro.subscriptions, pro.amount_cents) == ("pro", "usd", 2, 16000)
