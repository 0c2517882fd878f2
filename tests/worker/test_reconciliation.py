"""The whole proof on a real gate, worker and record: it finds nothing while calls run, and names each number that was touched."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow
from redis.asyncio import Redis
from sqlalchemy import select

from billing.accounts import create_account
from billing.database import open_engine
from billing.days import date_of
from billing.proofs import Proof
from billing.rebuild import RecordSource
from billing.seed import seed
from billing.tables import keys
from gateway.access.issue import Terms, issue_key
from gateway.clock import Clock
from gateway.limits.event import bare_event
from gateway.limits.gate import Ask, Gate
from gateway.limits.hold import Hold
from gateway.limits.policy import Numbers
from gateway.limits.shard import SHARDS, Shard, shard_of
from gateway.metering import StreamDrain
from gateway.reconciliation import prove
from tests.limits.house import a_gate, an_ask

Connection = psycopg.AsyncConnection[TupleRow]
TODAY = Clock().today()
NUMBERS = Numbers(quota=100, key_quota=50, free_hangups=1)


@dataclass
class House:
    """A gate, a drain that moves when it is told to, and an account with a key that has a cap."""

    gate: Gate
    valkey: Redis
    connection: Connection
    drain: StreamDrain
    account: str
    key: str
    numbers: Numbers = NUMBERS

    @property
    def shard(self) -> Shard:
        return Shard(shard_of(self.account), "")

    def ask(self, fare: int = 1) -> Ask:
        return an_ask(self.numbers, account=self.account, key=self.key, version=2, fare=fare)

    async def call(self, verdict: str = "posted", reason: str = "answered", fare: int = 1) -> None:
        ask = self.ask(fare)
        with await self.gate.admit(ask) as hold:
            hold.settle(verdict, reason, bare_event(ask, 200, "gw"))

    async def open(self, fare: int = 1) -> Hold:
        """A call that runs; the caller leaves it."""
        return await self.gate.admit(self.ask(fare))

    async def settled(self) -> None:
        assert await self.gate.flush(2) == 0

    async def prove(self, *, is_repairing: bool = False) -> Proof:
        return await prove(self.connection, self.valkey, datetime.now(UTC), shards=SHARDS, is_repairing=is_repairing)


@asynccontextmanager
async def a_house(database_url: str, valkey_url: str) -> AsyncIterator[House]:
    account, key = an_account(database_url)
    source = RecordSource(database_url, timeout_seconds=5.0)
    await source.open()
    async with (
        Redis.from_url(valkey_url) as valkey,
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection,
        a_gate(valkey_url, source) as gate,
    ):
        yield House(gate, valkey, connection, StreamDrain(valkey, Clock(), shards=SHARDS, retention_days=400), account, key)
    await source.close()


def an_account(database_url: str) -> tuple[str, str]:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        made = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="test")
        issue_key(connection, made.id, Terms(name="k"), pepper="p" * 32, actor="test")
        key = connection.scalar(select(keys.c.id))
    engine.dispose()
    return str(made.id), str(key)


@pytest.fixture
async def house(database_url: str, valkey_url: str) -> AsyncIterator[House]:
    """With rows of every verdict, events on their way, a repeated one among them, and two calls that run."""
    async with a_house(database_url, valkey_url) as built:
        for verdict, reason in (("posted", "answered"), ("voided", "engine_broke"), ("hangup", "left_before_output")):
            await built.call(verdict, reason, fare=2)
        await built.settled()
        assert await built.drain.step(built.connection) == 3
        for verdict, reason in (("posted", "answered"), ("hangup", "left_before_output")):
            await built.call(verdict, reason, fare=3)
        await built.settled()
        latest: Any = await built.valkey.xrevrange(built.shard.events, count=1)
        await built.valkey.xadd(built.shard.events, latest[0][1])
        running = [await built.open(), await built.open(fare=4)]
        yield built
        for hold in running:
            with hold:
                pass
        await built.settled()


async def all_rows(connection: Connection) -> list[TupleRow]:
    cursor = await connection.execute("SELECT * FROM requests ORDER BY id")
    return await cursor.fetchall()


def found(proof: Proof) -> list[tuple[str, str]]:
    return [(one.kind, one.what) for one in proof.findings]


async def test_while_calls_run_and_events_wait_everything_adds_up(house: House) -> None:
    proof = await house.prove()
    assert (found(proof), proof.rows, proof.counters) == ([], 3, 2)
    while await house.drain.step(house.connection):
        pass
    proof = await house.prove()
    assert (found(proof), proof.rows, proof.counters) == ([], 5, 2)


async def test_proofs_in_the_middle_of_traffic_find_nothing(house: House, database_url: str) -> None:
    """Calls begin and end, events are drained and trimmed, all between the moments at which a proof looks."""
    stop = asyncio.Event()

    async def calls(verdict: str, reason: str) -> None:
        while not stop.is_set():
            await house.call(verdict, reason)

    async def drained(connection: Connection) -> None:
        drain = StreamDrain(house.valkey, Clock(), shards=SHARDS, retention_days=400, kept_seconds=0.05)
        while not stop.is_set():
            await drain.step(connection)
            await drain.trim()

    house.numbers = Numbers(quota=10**9, key_quota=10**9)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other, asyncio.TaskGroup() as group:
        for ending in (("posted", "answered"), ("voided", "engine_broke"), ("hangup", "left_before_output")):
            group.create_task(calls(*ending))
        group.create_task(drained(other))
        proofs = [await house.prove() for _ in range(30)]
        stop.set()
    assert [one.what for proof in proofs for one in proof.findings] == []
    assert proofs[-1].rows > proofs[0].rows + 30


async def test_a_number_that_was_touched_is_named_with_its_parts_and_mended_from_the_record(house: House) -> None:
    shard, connection = house.shard, house.connection
    await house.valkey.hincrby(shard.account(house.account), f"u{TODAY}", 2)
    await house.valkey.hincrby(shard.account(house.account), f"g{TODAY}", -1)
    await house.valkey.hincrby(shard.account(house.account), "open", 1)
    await house.valkey.hincrby(shard.key(house.key), f"u{TODAY}", -1)
    proof = await house.prove()
    assert [(one.kind, one.account, one.name) for one in proof.findings] == [("counter", house.account, "acme")] * 4
    said = " / ".join(one.what for one in proof.findings)
    # Posted: 2 fares in the ledger, 3 and 3 (a hang-up beyond the free one) on their way; 1 and 4 are held.
    assert "counter of fares is 15, the record's 13 (2 in the ledger, 6 on the way to it, 5 held): 2 too many" in said
    assert "counter of hang-ups is 1, the record's 2 (1 in the ledger, 1 on the way to it, 0 held): 1 too few" in said
    assert "counter of open calls is 3, the record's 2 (0 in the ledger, 0 on the way to it, 2 held): 1 too many" in said
    assert f"counter of fares of key {house.key} is 12, the record's 13" in said
    assert {one.day for one in proof.findings} == {date_of(TODAY), None}

    rows = await all_rows(connection)
    mended = await house.prove(is_repairing=True)
    assert [one.is_repaired for one in mended.findings] == [True] * 4
    assert await all_rows(connection) == rows
    await house.call()  # finds its counters cold, and has them rebuilt
    await house.settled()
    proof = await house.prove()
    assert (found(proof), proof.counters) == ([], 2)
    assert await house.valkey.hget(shard.account(house.account), f"u{TODAY}") == b"14"


async def test_a_roll_up_is_mended_before_the_counters_are_held_against_it(house: House) -> None:
    await house.connection.execute("UPDATE usage_daily SET fares = fares + 5")
    assert [one.kind for one in (await house.prove()).findings] == ["roll-up", "counter", "counter"]
    mended = await house.prove(is_repairing=True)
    assert [(one.kind, one.is_repaired) for one in mended.findings] == [("roll-up", True)]
    assert "has 7 fares, the rows add up to 2" in mended.findings[0].what
    assert (await house.prove()).findings == []


async def test_a_row_that_is_missing_shows_though_its_roll_up_was_moved_with_it(house: House) -> None:
    """A call was let in, its fare was counted, and nobody wrote its row."""
    await house.connection.execute("DELETE FROM requests WHERE verdict = 'posted'")
    await house.connection.execute("UPDATE usage_daily SET fares = fares - 2, posted = posted - 1")
    proof = await house.prove()
    assert {one.kind for one in proof.findings} >= {"counter"}
    assert any("of fares is 13, the record's 11" in one.what for one in proof.findings)


async def test_a_hold_that_vanished_shows(house: House) -> None:
    [holds] = [name async for name in house.valkey.scan_iter(match="*:holds:*")]
    kept: Any = await house.valkey.hgetall(holds)
    await house.valkey.hdel(holds, next(iter(kept)))
    said = " / ".join(one.what for one in (await house.prove()).findings)
    assert "of open calls is 2, the record's 1" in said
    await house.valkey.hset(holds, mapping=kept)
    assert (await house.prove()).findings == []


async def test_an_event_that_could_not_become_a_row_is_named(house: House) -> None:
    await house.valkey.xadd(house.shard.events, {"id": "x", "v": "posted", "r": "answered", "e": "{"})
    while await house.drain.step(house.connection):
        pass
    [one] = (await house.prove()).findings
    assert one.kind == "event"
    assert one.what.startswith("request x has no row: ")


async def test_counters_of_a_lost_memory_say_nothing(house: House) -> None:
    await house.valkey.hset(house.shard.account(house.account), mapping={"n": "of another", f"u{TODAY}": 99})
    assert [one.what for one in (await house.prove()).findings] == []
    nonce: Any = await house.valkey.hget(house.shard.epoch, "nonce")
    await house.valkey.hset(house.shard.account(house.account), mapping={"n": nonce})
    assert len((await house.prove()).findings) == 1


async def test_an_idle_account_that_is_cold_on_a_day_is_not_held_against_it(database_url: str, valkey_url: str) -> None:
    async with a_house(database_url, valkey_url) as house:
        proof = await house.prove()
        assert (proof.findings, proof.counters, proof.rows) == ([], 0, 0)
        await house.gate.usage(house.account, house.key)  # looks, and so seeds them
        proof = await house.prove()
        assert (found(proof), proof.counters) == ([], 2)


async def test_without_valkey_the_roll_ups_are_proved_and_it_says_what_is_not(database_url: str) -> None:
    async with (
        Redis.from_url("redis://127.0.0.1:1") as nowhere,
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection,
    ):
        [one] = (await prove(connection, nowhere, datetime.now(UTC), shards=SHARDS)).findings
    assert one.kind == "unproved"
    assert "Valkey can't be reached" in one.what
