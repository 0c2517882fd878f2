"""Gate, worker and record together: what is held ends as one row, and a counter that vanished comes back from the rows."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis.asyncio import Redis

from billing.accounts import create_account
from billing.database import open_engine
from billing.rebuild import RecordSource
from billing.seed import seed
from gateway.limits.event import bare_event
from gateway.limits.gate import Ask, Gate, QuotaUsedUp
from gateway.limits.policy import Numbers
from tests.billing.events import KEY
from tests.limits.house import a_gate, an_ask
from tests.worker.running import worker

LEASE_MS = 1000


@pytest.fixture
def account(database_url: str) -> str:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        made = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="test")
    engine.dispose()
    return str(made.id)


@pytest.fixture
async def source(database_url: str) -> AsyncIterator[RecordSource]:
    opened = RecordSource(database_url, timeout_seconds=5.0)
    await opened.open()
    yield opened
    await opened.close()


def ask_of(account: str) -> Ask:
    return an_ask(Numbers(quota=5), account=account, key=KEY)


async def answer(gate: Gate, ask: Ask) -> None:
    with await gate.admit(ask) as hold:
        hold.settle("posted", "answered", bare_event(ask, 200, "gw"))


async def rows(database_url: str) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cursor = await connection.execute("SELECT verdict, reason, count(*)::int FROM requests GROUP BY 1, 2 ORDER BY 1")
        return await cursor.fetchall()


async def until_rows(database_url: str, expected: list[tuple[Any, ...]], log: Path) -> None:
    for _ in range(500):
        if await rows(database_url) == expected:
            return
        await asyncio.sleep(0.02)
    _fail(f"{await rows(database_url)} is not {expected}", log)


def _fail(what: str, log: Path) -> None:
    pytest.fail(f"{what}: {log.read_text()}")


async def test_a_dead_gateways_hold_ends_as_one_expired_row(
    database_url: str, valkey_url: str, account: str, source: RecordSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAREGATE_LEASE_MS", str(LEASE_MS))
    log = tmp_path / "worker.log"
    async with a_gate(valkey_url, source, lease_ms=LEASE_MS) as gate:
        await answer(gate, ask_of(account))
        await gate.admit(ask_of(account))  # and never left: its process is gone
        await gate.flush(2)
    with worker(database_url, valkey_url, log):
        await until_rows(database_url, [("expired", "gateway_died", 1), ("posted", "answered", 1)], log)
    async with a_gate(valkey_url, source) as gate:
        for _ in range(4):
            await answer(gate, ask_of(account))
        with pytest.raises(QuotaUsedUp):
            await gate.admit(ask_of(account))


async def test_after_a_flush_the_quota_is_what_the_rows_and_the_resent_events_say(
    database_url: str, valkey_url: str, account: str, source: RecordSource, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    with worker(database_url, valkey_url, log):
        async with a_gate(valkey_url, source) as gate:
            for _ in range(3):
                await answer(gate, ask_of(account))
            await gate.flush(2)
            await until_rows(database_url, [("posted", "answered", 3)], log)
            async with Redis.from_url(valkey_url) as valkey:
                await valkey.flushall()
            await asyncio.sleep(0.8)  # one beat finds the new epoch
            for _ in range(2):
                await answer(gate, ask_of(account))
            with pytest.raises(QuotaUsedUp):
                await gate.admit(ask_of(account))
            await gate.flush(2)
            await until_rows(database_url, [("posted", "answered", 5)], log)
