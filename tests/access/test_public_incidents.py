"""What broke other gateways' keys and records in public, tried here: SQL in a key, half a key, wildcards, secrets in lists."""

from collections.abc import AsyncIterator, Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from billing.accounts import create_account, find_account, list_accounts
from billing.database import open_engine
from billing.seed import seed
from billing.unknown import AccountUnknown
from gateway.access import keys
from gateway.access.issue import Issued, Terms, issue_key, list_keys
from gateway.access.keyring import KeyMalformed, Keyring, KeyUnknown
from gateway.access.keystore import KeyStore
from gateway.access.users import create_user
from gateway.clock import Clock

PEPPER = "p" * 32
ADDRESS = "192.0.2.1"
INJECTED = "x' OR '1'='1'; DROP TABLE keys; --"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    seed(database_url)
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def issued(engine: Engine) -> Issued:
    with engine.begin() as connection:
        account = create_account(connection, name="acme", email="a@acme.test", plan_code="pro", actor="test")
        return issue_key(connection, account.id, Terms("k"), pepper=PEPPER, actor="test")


@pytest.fixture
async def keyring(database_url: str) -> AsyncIterator[Keyring]:
    store = KeyStore(database_url, grace_days=7)
    await store.open()
    yield Keyring(store, PEPPER, now_ms=Clock().now_ms)
    await store.close()


async def test_sql_in_a_key_finds_nothing_and_harms_nothing(keyring: Keyring, issued: Issued) -> None:
    """CVE-2026-42208 of LiteLLM: the caller's key stood in the text of a query on the way to an error."""
    for token in (INJECTED, keys.PREFIX + INJECTED, issued.token[:-6] + "' OR 1"):
        with pytest.raises(KeyMalformed):
            await keyring.caller(token, ADDRESS)
    assert (await keyring.caller(issued.token, ADDRESS)).key_id == str(issued.key.id)


async def test_a_key_that_begins_like_another_is_another(keyring: Keyring, issued: Issued) -> None:
    """CVE-2026-35030 of LiteLLM: its cache knew a token by its first twenty letters."""
    await keyring.caller(issued.token, ADDRESS)
    body = issued.token[: -keys.CHECKSUM_LENGTH]
    other = body[:-1] + ("a" if body[-1] != "a" else "b")
    token = other + keys._checksum(other)
    assert keys.looks_valid(token)
    with pytest.raises(KeyUnknown):
        await keyring.caller(token, ADDRESS)


@pytest.mark.parametrize("name", ["%", "_cme", "ac%", "acm_", INJECTED, "\\", "ACME"])
def test_a_name_with_wildcards_or_sql_is_a_name(engine: Engine, issued: Issued, name: str) -> None:
    """CVE-2026-25591 of new-api: what was looked for went into LIKE as it came."""
    with engine.begin() as connection:
        with pytest.raises(AccountUnknown):
            find_account(connection, name)
        assert [account.name for account in list_accounts(connection)] == ["acme"]


def test_neither_lists_nor_tables_hold_a_secret(engine: Engine, issued: Issued) -> None:
    """CVE-2026-64859 of new-api: a list of users had root's token in it. GHSA-69x8-hrgq-fjj8 of LiteLLM: a hash signed in."""
    password = "correct horse battery"
    with engine.begin() as connection:
        create_user(connection, email="root@acme.test", password=password, role="admin", actor="test")
        shown = repr(list_keys(connection, issued.key.account_id)) + repr(list_accounts(connection))
        kept = "".join(_whole(connection, table) for table in ("keys", "users", "accounts", "audit_entries", "staged_jobs"))
    for secret in (issued.token, password):
        assert secret not in shown + kept
    assert keys.digest(PEPPER, issued.token).hex() not in shown
    assert "$argon2id$" in kept
    assert "$argon2id$" not in shown


def _whole(connection: Connection, table: str) -> str:
    return "".join(str(row) for row in connection.execute(text(f"SELECT t::text FROM {table} AS t")))
