"""The keyring on a real PostgreSQL: one query on a miss, none on a hit, and never "unknown" for "can't be asked"."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import Engine, insert, text
from uuid_utils.compat import uuid7

from billing.accounts import Account, create_account, set_plan, suspend_account
from billing.database import open_engine
from billing.seed import seed
from billing.tables import keys
from gateway.access.caller import Caller
from gateway.access.issue import Issued, Terms, issue_key, revoke_key
from gateway.access.keyring import KeyMalformed, Keyring, KeyUnknown
from gateway.access.keys import digest, mint
from gateway.access.keystore import FIND_KEY, KeyStore, KeyStoreUnavailable
from gateway.access.unknown import TooManyUnknownKeys, Tries
from gateway.clock import Clock
from tests.support.services import PostgresServer, running_postgres

PEPPER = "p" * 32
ADDRESS = "192.0.2.1"


class CountingStore(KeyStore):
    """The real store, which counts what it is asked."""

    asked = 0

    async def find(self, digest: bytes) -> Caller | None:
        self.asked += 1
        return await super().find(digest)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    seed(database_url)
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def account(engine: Engine) -> Account:
    with engine.begin() as connection:
        return create_account(connection, name="acme", email="a@acme.test", plan_code="pro", actor="test")


@pytest.fixture
def issued(engine: Engine, account: Account) -> Issued:
    with engine.begin() as connection:
        return issue_key(connection, account.id, Terms("k", quota_per_day=9, allowed_models=("m",)), pepper=PEPPER, actor="test")


@asynccontextmanager
async def opened(database_url: str, timeout_seconds: float = 5.0) -> AsyncIterator[CountingStore]:
    store = CountingStore(database_url, grace_days=7, timeout_seconds=timeout_seconds)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[CountingStore]:
    async with opened(database_url) as made:
        yield made


async def test_a_miss_is_one_query_and_a_hit_is_none(store: CountingStore, issued: Issued, account: Account) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    assert keyring.peek(issued.token) is None
    caller = await keyring.caller(issued.token, ADDRESS)
    assert (caller.account_id, caller.key_id, caller.account_name) == (str(account.id), str(issued.key.id), "acme")
    assert (caller.plan.code, caller.plan.quota_per_day, caller.key_quota_per_day) == ("pro", 1000, 9)
    assert (caller.allowed_models, caller.networks, caller.revoked, caller.version) == (frozenset({"m"}), (), False, 2)
    assert keyring.peek(issued.token) is caller
    assert await keyring.caller(issued.token, ADDRESS) is caller
    assert store.asked == 1
    assert issued.token not in repr(caller)
    assert repr(caller.digest) not in repr(caller)


async def test_a_hundred_at_once_are_one_query(store: CountingStore, issued: Issued) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    callers = await asyncio.gather(*(keyring.caller(issued.token, ADDRESS) for _ in range(100)))
    assert len({id(caller) for caller in callers}) == 1
    assert store.asked == 1


async def test_one_who_leaves_takes_nothing_from_the_others(store: CountingStore, issued: Issued) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    first = asyncio.ensure_future(keyring.caller(issued.token, ADDRESS))
    second = asyncio.ensure_future(keyring.caller(issued.token, ADDRESS))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).key_id == str(issued.key.id)


async def test_junk_costs_no_query_and_an_unknown_key_one_for_a_while(store: CountingStore) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    with pytest.raises(KeyMalformed):
        await keyring.caller("sk-123", ADDRESS)
    assert store.asked == 0
    token = mint()
    for _ in range(3):
        with pytest.raises(KeyUnknown):
            await keyring.caller(token, ADDRESS)
    assert store.asked == 1


async def test_guessing_is_slowed_down_by_address_and_good_keys_are_not_counted(store: CountingStore, issued: Issued) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms, tries=Tries(tries=3))
    for _ in range(3):
        with pytest.raises(KeyUnknown):
            await keyring.caller(mint(), ADDRESS)
    with pytest.raises(TooManyUnknownKeys) as refused:
        await keyring.caller(mint(), ADDRESS)
    assert 1 <= refused.value.seconds <= 10
    assert store.asked == 3
    await keyring.caller(issued.token, "192.0.2.2")
    assert (await keyring.caller(issued.token, ADDRESS)).key_id == str(issued.key.id)  # known: no try needed


def test_a_v6_network_counts_as_one_address_and_a_try_can_be_given_back() -> None:
    tries = Tries(tries=2)
    tries.take("2001:db8::1")
    tries.take("2001:db8::2")
    with pytest.raises(TooManyUnknownKeys):
        tries.take("2001:db8::3")
    tries.take("2001:db8:0:1::1")
    tries.give_back("2001:db8::9")
    tries.take("2001:db8::3")


async def test_a_reload_sees_the_change(store: CountingStore, issued: Issued, account: Account, engine: Engine) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    before = await keyring.caller(issued.token, ADDRESS)
    with engine.begin() as connection:
        revoke_key(connection, issued.key.id, actor="test")
        suspend_account(connection, account.id, actor="test")
        set_plan(connection, account.id, "premium", actor="test")
    after = await keyring.reload(before)
    assert (after.revoked, after.account_state, after.plan.code, after.version) == (
        True,
        "suspended",
        "premium",
        before.version + 3,
    )
    assert keyring.peek(issued.token) is after


async def test_a_young_snapshot_can_be_asked_for(store: CountingStore, issued: Issued, engine: Engine) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
    await keyring.caller(issued.token, ADDRESS)
    with engine.begin() as connection:
        revoke_key(connection, issued.key.id, actor="test")
    assert not (await keyring.caller(issued.token, ADDRESS)).revoked
    assert (await keyring.caller(issued.token, ADDRESS, seconds_old=0.0)).revoked


async def test_the_cache_is_bounded(store: CountingStore, account: Account, engine: Engine) -> None:
    keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms, known_max=2)
    with engine.begin() as connection:
        tokens = [issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="test").token for _ in range(3)]
    for token in tokens:
        await keyring.caller(token, ADDRESS)
    assert [keyring.peek(token) is not None for token in tokens] == [False, True, True]


async def test_postgresql_frozen_or_gone_is_never_an_unknown_key() -> None:
    with running_postgres() as server:
        token = _issue_on(server)
        async with opened(server.url("migrated"), timeout_seconds=0.5) as store:
            keyring = Keyring(store, PEPPER, now_ms=Clock().now_ms)
            known = await keyring.caller(token, ADDRESS)
            frozen = [server.process.pid, *_backends(server)]
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(KeyStoreUnavailable):
                await keyring.caller(mint(), ADDRESS)
            with pytest.raises(KeyStoreUnavailable):
                await keyring.reload(known)
            assert time.monotonic() - began < 3
            assert await keyring.caller(token, ADDRESS, seconds_old=0.0) is known  # old, but better than nothing
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            server.postgres.stop(server.process)
            with pytest.raises(KeyStoreUnavailable):
                await keyring.caller(mint(), ADDRESS)
            assert keyring.peek(token) is known


def test_the_query_goes_by_index(engine: Engine, account: Account, database_url: str) -> None:
    rows = [
        {"id": uuid7(), "account_id": account.id, "hash": digest(PEPPER, str(number)), "prefix": "p", "last4": "l", "name": "k",
         "scopes": ["read"], "expires_at": datetime(2030, 1, 1, tzinfo=UTC)}
        for number in range(3000)
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(keys), rows)
        connection.execute(text("ANALYZE keys"))
    with psycopg.connect(database_url) as raw:
        plan = raw.execute(f"EXPLAIN {FIND_KEY}".encode(), {"hash": digest(PEPPER, "7")}).fetchall()
    lines = "\n".join(line for (line,) in plan)
    assert "Index Scan using keys_hash_key" in lines
    assert "Seq Scan on keys" not in lines


def _issue_on(server: PostgresServer) -> str:
    seed(server.url("migrated"))
    engine = open_engine(server.url("migrated"))
    with engine.begin() as connection:
        account = create_account(connection, name="acme", email="a@acme.test", plan_code="pro", actor="test")
        token = issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="test").token
    engine.dispose()
    return token


def _backends(server: PostgresServer) -> list[int]:
    with psycopg.connect(server.url("postgres")) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = 'migrated'").fetchall()
    return [pid for (pid,) in found]
