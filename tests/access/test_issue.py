"""Issuing, rotating and revoking keys: each change moves the account's version, leaves an audit entry and stages a job."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import psycopg
import pytest
from sqlalchemy import Connection, select

from billing.accounts import Account, create_account
from billing.database import open_engine
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.partitions import make_partitions
from billing.seed import seed
from billing.tables import accounts, audit_entries, keys, staged_jobs
from billing.unknown import AccountUnknown
from gateway.access.issue import (
    KeyEnded,
    KeyNotThere,
    KeyWrong,
    Terms,
    find_key,
    issue_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from gateway.access.keys import digest
from tests.billing.events import event, fields

PEPPER = "p" * 32


@pytest.fixture
def account(connection: Connection) -> Account:
    return create_account(connection, name="acme", email="a@acme.test", plan_code="pro", actor="test")


def version(connection: Connection, account: Account) -> int:
    found: int = connection.scalar(select(accounts.c.version).where(accounts.c.id == account.id)) or 0
    return found


def test_only_the_hmac_of_a_key_is_kept(connection: Connection, account: Account) -> None:
    issued = issue_key(connection, account.id, Terms("ci"), pepper=PEPPER, actor="test")
    row = connection.execute(select(keys)).one()
    assert bytes(row.hash) == digest(PEPPER, issued.token)
    assert issued.token not in repr(row)
    assert row.prefix == issued.token[:14]
    assert row.last4 == issued.token[-4:]


def test_terms_come_back_as_they_were_given(connection: Connection, account: Account) -> None:
    ends = datetime(2030, 1, 1, tzinfo=UTC)
    terms = Terms("all", ("inference",), ("m1", "m2"), 7, 8, (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")), ends)
    issued = issue_key(connection, account.id, terms, pepper=PEPPER, actor="test")
    assert find_key(connection, issued.key.id).terms == terms


def test_every_change_of_a_key_moves_the_version_and_stages_a_bump(connection: Connection, account: Account) -> None:
    issued = issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="ann")
    assert version(connection, account) == 2
    rotate_key(connection, issued.key.id, overlap=timedelta(hours=1), pepper=PEPPER, actor="ann")
    assert version(connection, account) == 3
    revoke_key(connection, issued.key.id, actor="ann")
    assert version(connection, account) == 4
    staged = connection.scalars(select(staged_jobs.c.payload).order_by(staged_jobs.c.id)).all()
    assert staged == [{"account": str(account.id), "version": number} for number in (2, 3, 4)]
    told = connection.execute(select(audit_entries.c.action, audit_entries.c.actor).order_by(audit_entries.c.id)).all()
    assert [tuple(row) for row in told[1:]] == [("key.issue", "ann"), ("key.rotate", "ann"), ("key.revoke", "ann")]


def test_a_rotated_key_works_on_for_the_overlap_and_its_successor_has_its_terms(connection: Connection, account: Account) -> None:
    first = issue_key(connection, account.id, Terms("k", quota_per_day=5), pepper=PEPPER, actor="test")
    second = rotate_key(connection, first.key.id, overlap=timedelta(hours=24), pepper=PEPPER, actor="test")
    old = find_key(connection, first.key.id)
    assert second.key.rotated_from == first.key.id
    assert second.key.terms == Terms("k", ("inference", "read"), quota_per_day=5)
    assert old.terms.expires_at is not None
    left = old.terms.expires_at - datetime.now(UTC)
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24)
    assert old.state(datetime.now(UTC)) == "active"
    assert old.state(old.terms.expires_at) == "expired"


def test_a_key_is_rotated_once(connection: Connection, account: Account) -> None:
    """The second time its successor got the overlap's short life, and ended with the key it was to replace."""
    first = issue_key(connection, account.id, Terms(name="x"), pepper=PEPPER, actor="test").key
    second = rotate_key(connection, first.id, overlap=timedelta(hours=1), pepper=PEPPER, actor="test").key
    with pytest.raises(KeyEnded, match=str(second.id)):
        rotate_key(connection, first.id, overlap=timedelta(hours=1), pepper=PEPPER, actor="test")
    assert rotate_key(connection, second.id, overlap=timedelta(hours=1), pepper=PEPPER, actor="test").key.terms.expires_at is None


def test_rotation_never_lengthens_a_life(connection: Connection, account: Account) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=5)
    first = issue_key(connection, account.id, Terms("k", expires_at=soon), pepper=PEPPER, actor="test")
    rotate_key(connection, first.key.id, overlap=timedelta(hours=24), pepper=PEPPER, actor="test")
    assert find_key(connection, first.key.id).terms.expires_at == soon


def test_a_revoked_key_can_not_be_rotated_and_stays_revoked(connection: Connection, account: Account) -> None:
    issued = issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="test")
    once = revoke_key(connection, issued.key.id, actor="test").revoked_at
    assert once is not None
    assert revoke_key(connection, issued.key.id, actor="test").revoked_at == once
    with pytest.raises(KeyEnded, match="revoked"):
        rotate_key(connection, issued.key.id, overlap=timedelta(0), pepper=PEPPER, actor="test")


@pytest.mark.parametrize(
    "terms",
    [
        Terms("k", scopes=("root",)),
        Terms("k", scopes=()),
        Terms(""),
        Terms("k", quota_per_day=-1),
        Terms("k", requests_per_minute=0),
    ],
)
def test_a_key_that_can_not_be_is_refused(connection: Connection, account: Account, terms: Terms) -> None:
    with pytest.raises(KeyWrong):
        issue_key(connection, account.id, terms, pepper=PEPPER, actor="test")


def test_unknown_account_and_key_are_named_so(connection: Connection, account: Account) -> None:
    with pytest.raises(AccountUnknown):
        issue_key(connection, account.id.__class__(int=1), Terms("k"), pepper=PEPPER, actor="test")
    with pytest.raises(KeyNotThere):
        revoke_key(connection, account.id, actor="test")
    assert list_keys(connection, account.id) == []


async def test_a_key_knows_when_it_was_used_last(database_url: str) -> None:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        account = create_account(connection, name="acme", email="a@acme.test", plan_code="pro", actor="test")
        key = issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="test").key
    usage = event(1_796_000_000_000, account=str(account.id), key=str(key.id))
    row = Placed(parse(fields(usage), range(usage["day"], usage["day"] + 1)), 0, Position("n", "1-0"), {})
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as raw:
        await make_partitions(raw, [usage["day"]])
        async with raw.transaction():
            await record(raw, [row], [], [])
    with engine.begin() as connection:
        used = find_key(connection, key.id).last_used_at
    engine.dispose()
    assert used == datetime.fromtimestamp(1_796_000_000, UTC)
