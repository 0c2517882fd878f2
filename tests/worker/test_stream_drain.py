"""Draining the streams: each event once, in any memory of Valkey, with the watermark and the trim that follow."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow
from redis.asyncio import Redis

from billing.ledger import PositionMoved, positions
from gateway.clock import Clock
from gateway.metering import ENTRIES_A_SHARD, StreamDrain
from tests.billing.events import event, fields

Connection = psycopg.AsyncConnection[TupleRow]
SHARDS = 4


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
async def valkey(valkey_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(valkey_url) as client:
        for shard in range(SHARDS):
            await client.hset(f"{{s{shard:02d}}}:epoch", "nonce", "first")
        yield client


def drain_of(valkey: Redis, *, kept_seconds: float = 60.0) -> StreamDrain:
    return StreamDrain(valkey, Clock(), shards=SHARDS, retention_days=400, kept_seconds=kept_seconds)


async def settle(valkey: Redis, shard: int, usage: dict[str, Any] | None = None, verdict: str = "posted") -> str:
    entry = await valkey.xadd(f"{{s{shard:02d}}}:ev", fields(usage or event(Clock().now_ms()), verdict))
    assert isinstance(entry, bytes)
    return entry.decode()


async def one(connection: Connection, query: str) -> Any:
    cursor = await connection.execute(query.encode())
    row = await cursor.fetchone()
    assert row is not None
    return row[0]


async def test_events_of_every_shard_are_recorded_once_and_the_watermark_says_so(valkey: Redis, connection: Connection) -> None:
    drain = drain_of(valkey)
    last = [await settle(valkey, shard) for shard in range(SHARDS) for _ in range(3)][-1]
    assert await drain.step(connection) == 12
    assert await drain.step(connection) == 0
    assert await one(connection, "SELECT count(*) FROM requests") == 12
    assert await one(connection, "SELECT posted FROM usage_daily") == 12
    assert await valkey.get("{s03}:wm") == f"first {last}".encode()


async def test_a_new_worker_goes_on_where_the_last_one_committed(valkey: Redis, connection: Connection) -> None:
    await settle(valkey, 1)
    await drain_of(valkey).step(connection)
    await settle(valkey, 1)
    drain = drain_of(valkey)
    assert await drain.step(connection) == 1
    assert drain.tally.repeated == 0


async def test_a_watermark_that_was_lost_is_written_again_at_the_next_start(valkey: Redis, connection: Connection) -> None:
    last = await settle(valkey, 1)
    await drain_of(valkey).step(connection)
    await valkey.delete("{s01}:wm")
    await drain_of(valkey).step(connection)
    assert await valkey.get("{s01}:wm") == f"first {last}".encode()


async def test_a_new_nonce_is_read_from_the_start_and_repeats_are_dropped(valkey: Redis, connection: Connection) -> None:
    drain = drain_of(valkey)
    kept = event(Clock().now_ms())
    await settle(valkey, 2, kept)
    await settle(valkey, 2)
    await drain.step(connection)
    await valkey.delete("{s02}:ev")  # Valkey came back without its memory, and a gateway sent again what it had kept
    await valkey.hset("{s02}:epoch", "nonce", "second")
    await valkey.xadd("{s02}:ev", fields(kept), id="1-0")
    await valkey.xadd("{s02}:ev", fields(event(Clock().now_ms())), id="2-0")
    assert await drain.step(connection) == 2
    assert (drain.tally.inserted, drain.tally.repeated) == (3, 1)
    assert await valkey.get("{s02}:wm") == b"second 2-0"
    assert await one(connection, "SELECT posted FROM usage_daily") == 3


async def test_a_malformed_entry_is_set_aside_and_blocks_nothing(valkey: Redis, connection: Connection) -> None:
    drain = drain_of(valkey)
    await valkey.xadd("{s00}:ev", {"id": "x", "e": "{"})
    await settle(valkey, 0)
    assert await drain.step(connection) == 2
    assert await drain.step(connection) == 0
    assert (drain.tally.inserted, drain.tally.rejected) == (1, 1)
    assert await one(connection, "SELECT count(*) FROM rejected_events") == 1


async def test_two_workers_at_once_record_each_event_once(valkey: Redis, connection: Connection, database_url: str) -> None:
    ours, theirs = drain_of(valkey), drain_of(valkey)
    await settle(valkey, 1)
    await ours.step(connection)
    await theirs.step(connection)
    await settle(valkey, 1)
    await ours.step(connection)
    with pytest.raises(PositionMoved):
        await theirs.step(connection)
    assert await theirs.step(connection) == 0
    assert await one(connection, "SELECT count(*) FROM requests") == 2


async def test_trimmed_is_what_was_committed_long_enough_ago(valkey: Redis, connection: Connection) -> None:
    patient, hasty = drain_of(valkey), drain_of(valkey, kept_seconds=0.0)
    for _ in range(3):
        await settle(valkey, 1)
    await patient.step(connection)
    await patient.trim()
    assert await valkey.xlen("{s01}:ev") == 3
    await settle(valkey, 1)  # not committed
    hasty._positions = None
    await hasty._mark({1: (await positions(connection))[1]})
    await hasty.trim()
    assert await valkey.xlen("{s01}:ev") == 1
    assert await hasty.step(connection) == 1


async def test_a_backlog_longer_than_one_turn_is_drained_in_order(valkey: Redis, connection: Connection) -> None:
    drain = drain_of(valkey)
    pipeline = valkey.pipeline(transaction=False)
    for number in range(ENTRIES_A_SHARD + 10):
        pipeline.xadd("{s01}:ev", fields(event(Clock().now_ms() + number)), id=f"{number + 1}-0")
    await pipeline.execute()
    entries, waiting_ms = await drain.backlog()
    assert entries == ENTRIES_A_SHARD + 10
    assert waiting_ms > 0
    assert [await drain.step(connection) for _ in range(3)] == [ENTRIES_A_SHARD, 10, 0]
    assert await drain.backlog() == (ENTRIES_A_SHARD + 10, 0)


async def test_a_failed_commit_is_done_again(valkey: Redis, connection: Connection, database_url: str) -> None:
    drain = drain_of(valkey)
    await settle(valkey, 1)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as broken:
        await broken.close()
        with pytest.raises(psycopg.OperationalError):
            await drain.step(broken)
    assert await drain.step(connection) == 1
