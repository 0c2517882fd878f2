"""Drains the shards' event streams into the ledger: read, record, watermark, and a minute later trim."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis

from billing.ledger import Move, Placed, Position, Recorded, Rejected, positions, record
from billing.meter import EventMalformed, parse
from billing.partitions import make_partitions
from gateway.clock import Clock
from gateway.crash import crash_point
from gateway.limits.shard import Shard

# All shards full are 16,000 entries: half a second of work, and of waiting for whatever else the worker does.
ENTRIES_A_SHARD = 250
KEPT_SECONDS = 60.0  # gateways and rebuilds still look at what was committed a moment ago
MARK_SECONDS = 1.0
DAYS_AHEAD = 2
# Stream ids begin at 1: this is before all of them.
START = "0-0"


@dataclass(slots=True)
class Tally:
    """What this drain has done since it began; `late` are the settles that came after a sweep, which the house bears."""

    inserted: int = 0
    repeated: int = 0
    late: int = 0
    rejected: int = 0

    def add(self, recorded: Recorded) -> None:
        for one in fields(recorded):
            setattr(self, one.name, getattr(self, one.name) + getattr(recorded, one.name))


class StreamDrain:
    """One per worker. Two at once are harmless: a position is moved by compare-and-set, and the loser reads again."""

    def __init__(
        self, valkey: Redis, clock: Clock, *, shards: int, retention_days: int, kept_seconds: float = KEPT_SECONDS
    ) -> None:
        self._valkey = valkey
        self._clock = clock
        self._shards = tuple(Shard(number, "") for number in range(shards))
        self._retention_days = retention_days
        self._kept_seconds = kept_seconds
        self._positions: dict[int, Position] | None = None
        self._partitions: set[int] = set()
        self._committed: dict[int, deque[tuple[float, str]]] = {shard.number: deque() for shard in self._shards}
        self.tally = Tally()

    async def step(self, connection: psycopg.AsyncConnection[TupleRow]) -> int:
        """One turn over all shards; `connection` is in autocommit. Returns how many entries were committed.

        Raises: PositionMoved, psycopg.Error, redis.RedisError; whichever it was, the next turn goes on from what is committed.
        """
        try:
            return await self._step(connection)
        except BaseException:
            self._positions = None  # whether the commit happened is known to PostgreSQL alone
            raise

    async def news(self, seconds: float) -> None:
        """Waits until a shard has an entry after its position, `seconds` at most."""
        known = self._positions or {}
        streams: dict[Any, Any] = {shard.events: _entry(known.get(shard.number)) for shard in self._shards}
        await self._valkey.xread(streams, count=1, block=round(seconds * 1000))

    async def trim(self) -> None:
        """Let go of what has been committed for a minute; by id, never by length."""
        due = time.monotonic() - self._kept_seconds
        pipeline = self._valkey.pipeline(transaction=False)
        for shard in self._shards:
            last = None
            committed = self._committed[shard.number]
            while committed and committed[0][0] <= due:
                last = committed.popleft()[1]
            if last is not None:
                pipeline.xtrim(shard.events, minid=_after(last), approximate=False)
        if len(pipeline):
            await pipeline.execute()
            crash_point("worker:after_trim")

    async def backlog(self) -> tuple[int, int]:
        """Entries in the streams, and how many ms the oldest that is not committed has waited (0: none waits)."""
        known = self._positions or {}
        pipeline = self._valkey.pipeline(transaction=False)
        for shard in self._shards:
            pipeline.xlen(shard.events)
            pipeline.xrange(shard.events, f"({_entry(known.get(shard.number))}", "+", count=1)
        answers = await pipeline.execute()
        waiting = [int(page[0][0].split(b"-")[0]) for page in answers[1::2] if page]
        server_now = self._clock.now_ms() - self._clock.offset_ms
        return sum(answers[::2]), max(0, server_now - min(waiting)) if waiting else 0

    async def _step(self, connection: psycopg.AsyncConnection[TupleRow]) -> int:
        if self._positions is None:
            self._positions = await positions(connection)
            await self._mark(self._positions)
        batch = await self._read(self._positions)
        if not batch.moves:
            return 0
        await self._make_partitions(connection, batch)
        async with connection.transaction():
            recorded = await record(connection, batch.found, batch.rejected, batch.moves)
            crash_point("worker:after_insert")
        crash_point("worker:after_commit")
        self.tally.add(recorded)
        moved = {move.shard: move.after for move in batch.moves}
        self._positions |= moved
        await self._mark(moved)
        return len(batch.found) + len(batch.rejected)

    async def _read(self, known: dict[int, Position]) -> "_Batch":
        """Nonce before entries: entries that are newer than their nonce are only read again; the reverse would skip some."""
        pipeline = self._valkey.pipeline(transaction=False)
        for shard in self._shards:
            pipeline.hget(shard.epoch, "nonce")
            pipeline.xrange(shard.events, f"({_entry(known.get(shard.number))}", "+", count=ENTRIES_A_SHARD)
        answers = await pipeline.execute()
        batch = _Batch([], [], [])
        anew = []
        for shard, nonce, page in zip(self._shards, answers[::2], answers[1::2], strict=True):
            position = known.get(shard.number)
            spelled = nonce.decode() if nonce else ""
            if position is not None and position.nonce != spelled:
                anew.append((shard, spelled))
            else:
                self._take(batch, shard.number, spelled, page)
        await self._read_anew(batch, anew)
        return batch

    async def _read_anew(self, batch: "_Batch", anew: Sequence[tuple[Shard, str]]) -> None:
        """Valkey is not the one that the position was in: from the start, and what is recorded already is dropped by its key."""
        if not anew:
            return
        pipeline = self._valkey.pipeline(transaction=False)
        for shard, _ in anew:
            pipeline.xrange(shard.events, "-", "+", count=ENTRIES_A_SHARD)
        for (shard, nonce), page in zip(anew, await pipeline.execute(), strict=True):
            self._committed[shard.number].clear()
            self._take(batch, shard.number, nonce, page)

    def _take(self, batch: "_Batch", shard: int, nonce: str, page: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> None:
        today = self._clock.today()
        days = range(today - self._retention_days, today + DAYS_AHEAD + 1)
        for entry, entry_fields in page:
            at = Position(nonce, entry.decode())
            try:
                batch.found.append(Placed(parse(entry_fields, days), shard, at, entry_fields))
            except EventMalformed as error:
                batch.rejected.append(Rejected(shard, at, str(error), entry_fields))
        if page:
            assert self._positions is not None
            batch.moves.append(Move(shard, self._positions.get(shard), Position(nonce, page[-1][0].decode())))

    async def _make_partitions(self, connection: psycopg.AsyncConnection[TupleRow], batch: "_Batch") -> None:
        days = {placed.row.day for placed in batch.found} - self._partitions
        if days:
            await make_partitions(connection, days)
            self._partitions |= days

    async def _mark(self, committed: Mapping[int, Position]) -> None:
        """Tell the gateways; after a start, of everything, for the worker before may have died between commit and this."""
        now = time.monotonic()
        pipeline = self._valkey.pipeline(transaction=False)
        for number, position in committed.items():
            if number >= len(self._shards):
                continue
            pipeline.set(self._shards[number].wm, f"{position.nonce} {position.entry}")
            marks = self._committed[number]
            if not marks or now - marks[-1][0] >= MARK_SECONDS:
                marks.append((now, position.entry))
        if len(pipeline):
            await pipeline.execute()


@dataclass(slots=True)
class _Batch:
    found: list[Placed]
    rejected: list[Rejected]
    moves: list[Move]


def _entry(position: Position | None) -> str:
    return START if position is None else position.entry


def _after(entry: str) -> str:
    milliseconds, sequence = entry.split("-")
    return f"{milliseconds}-{int(sequence) + 1}"
