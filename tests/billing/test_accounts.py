"""Accounts and plan versions in the database; what a cold counter is rebuilt from."""

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import Connection, select

from billing.accounts import AccountNameTaken, create_account, find_account, resume_account, set_plan, suspend_account
from billing.database import open_engine
from billing.days import DAY_MS
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.partitions import make_partitions
from billing.plan_versions import PlanUnknown, PlanWrong, add_version, list_plans, plan_on_offer
from billing.reader import RecordUnavailable
from billing.rebuild import Recorded, RecordSource
from billing.seed import seed
from billing.tables import audit_entries, staged_jobs
from billing.unknown import AccountUnknown
from tests.billing.events import KEY, event, fields

NOW = 1_796_000_000_000
TODAY = NOW // DAY_MS


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.connect() as opened, opened.begin() as transaction:
        yield opened
        transaction.rollback()
    engine.dispose()


def test_seeding_twice_adds_nothing_and_changes_nothing(database_url: str) -> None:
    assert seed(database_url) == 5
    with psycopg.connect(database_url) as raw:
        raw.execute("UPDATE plans SET quota_per_day = 61 WHERE code = 'free'")
    assert seed(database_url) == 0
    with psycopg.connect(database_url) as raw:
        assert raw.execute("SELECT quota_per_day FROM plans WHERE code = 'free'").fetchone() == (61,)


def test_every_change_moves_the_version_is_audited_and_staged(connection: Connection) -> None:
    account = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="ann")
    assert suspend_account(connection, account.id, actor="ann").version == 2
    assert resume_account(connection, account.id, actor="bob").state == "active"
    moved = set_plan(connection, account.id, "premium", actor="bob")
    assert (moved.version, moved.plan_code) == (4, "premium")
    payloads = connection.scalars(select(staged_jobs.c.payload).order_by(staged_jobs.c.id)).all()
    assert payloads == [{"account": str(account.id), "version": version} for version in (2, 3, 4)]
    told = connection.execute(select(audit_entries.c.action, audit_entries.c.actor).order_by(audit_entries.c.id)).all()
    assert [tuple(row) for row in told] == [
        ("account.create", "ann"),
        ("account.set_state", "ann"),
        ("account.set_state", "bob"),
        ("account.set_plan", "bob"),
    ]


def test_a_change_that_is_rolled_back_leaves_nothing(database_url: str, connection: Connection) -> None:
    account = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="ann")
    with connection.begin_nested() as inner:
        suspend_account(connection, account.id, actor="ann")
        inner.rollback()
    assert find_account(connection, "acme").version == 1
    assert connection.scalars(select(staged_jobs.c.id)).all() == []


def test_names_are_unique_and_unknown_ones_are_named(connection: Connection) -> None:
    account = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="ann")
    assert find_account(connection, str(account.id)) == account
    with pytest.raises(AccountUnknown, match="nobody"):
        find_account(connection, "nobody")
    with pytest.raises(PlanUnknown), connection.begin_nested():
        set_plan(connection, account.id, "gold", actor="ann")
    with pytest.raises(AccountNameTaken):
        create_account(connection, name="acme", email="b@acme.test", plan_code="free", actor="ann")


def test_a_new_version_is_on_offer_when_it_takes_effect(connection: Connection) -> None:
    add_version(connection, "pro", {"quota_per_day": 1500}, actor="ann")
    add_version(connection, "pro", {"quota_per_day": 9000}, actor="ann", effective_from=datetime(2100, 1, 1, tzinfo=UTC))
    assert (plan_on_offer(connection, "pro").version, plan_on_offer(connection, "pro").quota_per_day) == (2, 1500)
    assert [one.plan.version for one in list_plans(connection) if one.plan.code == "pro"] == [1, 2, 3]
    with pytest.raises(PlanWrong, match="cents"):
        add_version(connection, "pro", {"price_cents": -1}, actor="ann")


async def test_a_rebuild_is_based_on_what_is_posted_and_tells_what_is_counted(database_url: str) -> None:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        account = str(create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="ann").id)
    engine.dispose()
    other_key = "0198c0de-0000-7000-8000-0000000000bb"
    usages = [
        (event(NOW, account=account, fare=3), "posted", "answered"),
        (event(NOW + 1, account=account, fare=2, key=other_key), "posted", "left_before_output"),
        (event(NOW + 2, account=account), "voided", "left_before_output"),
        (event(NOW - DAY_MS, account=account), "posted", "answered"),
    ]
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as raw:
        await make_partitions(raw, [TODAY - 1, TODAY])
        found = [
            Placed(parse(fields(*one), range(TODAY - 2, TODAY + 2)), 0, Position("n", "1-0"), fields(*one)) for one in usages
        ]
        async with raw.transaction():
            await record(raw, found, [], [])
    source = RecordSource(database_url, timeout_seconds=5.0)
    await source.open()
    known = usages[0][0]["id"]
    assert await source(account, KEY, TODAY, [known, event(NOW)["id"], "not-an-id"]) == Recorded(1, 5, 3, 2, frozenset({known}))
    assert await source(account, KEY, TODAY + 1, []) == Recorded(1, 0, 0, 0, frozenset())
    with pytest.raises(AccountUnknown):
        await source(KEY, KEY, TODAY, [])
    await source.close()


async def test_without_postgresql_a_rebuild_is_refused_within_its_time() -> None:
    source = RecordSource("postgresql://nobody@127.0.0.1:1/none", timeout_seconds=0.3)
    await source.open()
    with pytest.raises(RecordUnavailable):
        await source(KEY, KEY, TODAY, [])
    await source.close()
