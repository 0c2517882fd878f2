"""The only writer of `requests` and `usage_daily`: rows once each, and with them roll-ups and the stream's position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from billing.meter import LedgerRow

# One list of columns for rows, in the order of `LedgerRow`: how each travels, and how it is stored.
_COLUMNS = (
    ("day", "int", "date '1970-01-01' + e.day"),
    ("id", "uuid", "e.id"),
    ("account_id", "uuid", "e.account_id"),
    ("key_id", "uuid", "e.key_id"),
    ("model", "text", "e.model"),
    ("endpoint", "text", "e.endpoint"),
    ("fare", "int", "e.fare"),
    ("verdict", "text", "e.verdict"),
    ("reason", "text", "e.reason"),
    ("stream", "bool", "e.stream"),
    ("status", "smallint", "e.status"),
    ("at", "bigint", "timestamptz 'epoch' + e.at * interval '1 millisecond'"),
    ("queue_ms", "int", "e.queue_ms"),
    ("first_byte_ms", "int", "e.first_byte_ms"),
    ("total_ms", "int", "e.total_ms"),
    ("prompt_tokens", "int", "e.prompt_tokens"),
    ("cached_tokens", "int", "e.cached_tokens"),
    ("completion_tokens", "int", "e.completion_tokens"),
    ("tokens_estimated", "bool", "e.tokens_estimated"),
    ("replica", "text", "e.replica"),
    ("gateway", "text", "e.gateway"),
    ("from_pack", "bool", "e.from_pack"),
)
_NAMES = ", ".join(name for name, _, _ in _COLUMNS)

# What `requests` adds up to, by account, day, key and model; `reconcile` uses the same words.
ROLLUP = """
       coalesce(sum(fare) FILTER (WHERE verdict = 'posted' AND NOT from_pack), 0)::bigint AS fares,
       coalesce(sum(fare) FILTER (WHERE verdict = 'posted' AND from_pack), 0)::bigint AS pack_fares,
       count(*) FILTER (WHERE verdict = 'posted') AS posted,
       count(*) FILTER (WHERE verdict = 'voided') AS voided,
       count(*) FILTER (WHERE verdict = 'expired') AS expired,
       count(*) FILTER (WHERE reason = 'left_before_output') AS hangups,
       coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
       coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
       coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens
"""
SUMS = ("fares", "pack_fares", "posted", "voided", "expired", "hangups", "prompt_tokens", "cached_tokens", "completion_tokens")

_RECORD = f"""
WITH fresh AS (
  INSERT INTO requests ({_NAMES})
  SELECT {", ".join(stored for _, _, stored in _COLUMNS)}
    FROM unnest({", ".join(f"%s::{kind}[]" for _, kind, _ in _COLUMNS)}) AS e ({_NAMES})
  ON CONFLICT (day, id) DO NOTHING
  RETURNING account_id, day, key_id, model, fare, from_pack, verdict, reason, prompt_tokens, cached_tokens, completion_tokens, at
), used AS (
  UPDATE keys k SET last_used_at = f.at FROM (SELECT key_id, max(at) AS at FROM fresh GROUP BY key_id) f
   WHERE k.id = f.key_id AND (k.last_used_at IS NULL OR k.last_used_at < f.at - interval '1 minute')
), rolled AS (
  INSERT INTO usage_daily AS u (account_id, day, key_id, model, {", ".join(SUMS)})
  SELECT account_id, day, key_id, model, {ROLLUP} FROM fresh GROUP BY account_id, day, key_id, model
  ON CONFLICT (account_id, day, key_id, model) DO UPDATE SET {", ".join(f"{name} = u.{name} + excluded.{name}" for name in SUMS)}
)
SELECT count(*) FROM fresh
"""  # noqa: S608 - built from the tables above alone

_LATE = """
SELECT count(*) FROM unnest(%s::int[], %s::uuid[], %s::text[]) AS e (day, id, verdict)
  JOIN requests r ON r.day = date '1970-01-01' + e.day AND r.id = e.id AND r.verdict <> e.verdict
"""

_MOVE = """
WITH moved AS (
  UPDATE stream_positions p SET nonce = m.nonce, position = m.position, moved_at = now()
    FROM unnest(%(shards)s::int[], %(old_nonces)s::text[], %(old_positions)s::text[], %(nonces)s::text[], %(positions)s::text[])
         AS m (shard, old_nonce, old_position, nonce, position)
   WHERE p.shard = m.shard AND p.nonce = m.old_nonce AND p.position = m.old_position
  RETURNING 1
), begun AS (
  INSERT INTO stream_positions (shard, nonce, position)
  SELECT m.shard, m.nonce, m.position
    FROM unnest(%(shards)s::int[], %(old_nonces)s::text[], %(nonces)s::text[], %(positions)s::text[])
         AS m (shard, old_nonce, nonce, position)
   WHERE m.old_nonce IS NULL
  ON CONFLICT (shard) DO NOTHING
  RETURNING 1
)
SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM begun)
"""

_REJECT = """
INSERT INTO rejected_events (shard, nonce, position, problem, fields) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


class PositionMoved(Exception):
    """Another worker was here first: nothing of this batch may be committed; read the positions again."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far into a shard's stream the ledger is, and in which memory of Valkey."""

    nonce: str
    entry: str


@dataclass(frozen=True, slots=True)
class Move:
    """`before` is None where the shard was never read."""

    shard: int
    before: Position | None
    after: Position


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry that is no usage event, kept for a person to look at."""

    shard: int
    at: Position
    problem: str
    fields: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Placed:
    """A row, and where in which stream it was found."""

    row: LedgerRow
    shard: int
    at: Position
    fields: Mapping[bytes, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Recorded:
    """`repeated` rows were there already; `late` are those of them that are there with another verdict, which stands."""

    inserted: int
    repeated: int
    late: int
    rejected: int


async def positions(connection: AsyncConnection[TupleRow]) -> dict[int, Position]:
    cursor = await connection.execute("SELECT shard, nonce, position FROM stream_positions")
    return {shard: Position(nonce, entry) for shard, nonce, entry in await cursor.fetchall()}


async def record(
    connection: AsyncConnection[TupleRow], found: Sequence[Placed], rejected: Sequence[Rejected], moves: Sequence[Move]
) -> Recorded:
    """One batch, inside the transaction that the caller has begun and commits. Raises: PositionMoved."""
    await _move(connection, moves)
    refused = list(rejected)
    counted = await _insert_or_refuse(connection, found, refused)
    await _reject(connection, refused)
    return Recorded(*counted, rejected=len(refused))


async def _move(connection: AsyncConnection[TupleRow], moves: Sequence[Move]) -> None:
    values = {
        "shards": [move.shard for move in moves],
        "old_nonces": [move.before.nonce if move.before else None for move in moves],
        "old_positions": [move.before.entry if move.before else None for move in moves],
        "nonces": [move.after.nonce for move in moves],
        "positions": [move.after.entry for move in moves],
    }
    cursor = await connection.execute(_MOVE, values)
    row = await cursor.fetchone()
    if row is None or row[0] != len(moves):
        raise PositionMoved("another worker moved a stream's position")


async def _insert_or_refuse(
    connection: AsyncConnection[TupleRow], found: Sequence[Placed], refused: list[Rejected]
) -> tuple[int, int, int]:
    """Where the database refuses rows that the meter let pass: by halves, until what it refuses stands alone and is set aside."""
    try:
        async with connection.transaction():
            return await _insert(connection, found)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if len(found) == 1:
            refused.append(Rejected(found[0].shard, found[0].at, str(error), found[0].fields))
            return 0, 0, 0
    middle = len(found) // 2
    left = await _insert_or_refuse(connection, found[:middle], refused)
    right = await _insert_or_refuse(connection, found[middle:], refused)
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


async def _insert(connection: AsyncConnection[TupleRow], found: Sequence[Placed]) -> tuple[int, int, int]:
    """Inserted, repeated, late. Of one id twice in a batch the first counts, as it does across batches."""
    if not found:
        return 0, 0, 0
    first: dict[str, LedgerRow] = {}
    for placed in found:
        first.setdefault(placed.row.id, placed.row)
    late = sum(first[placed.row.id].verdict != placed.row.verdict for placed in found)
    rows = list(first.values())
    cursor = await connection.execute(_RECORD.encode(), _arrays(rows))
    row = await cursor.fetchone()
    inserted: int = row[0] if row else 0
    if inserted < len(rows):
        late += await _count_late(connection, rows)
    return inserted, len(found) - inserted, late


def _arrays(rows: Sequence[LedgerRow]) -> list[list[str] | str]:
    """Columns as PostgreSQL's array literals, in half of psycopg's time for lists; text needs its quoting."""
    return [
        list(column) if kind == "text" else "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"
        for (_, kind, _), column in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    ]


async def _count_late(connection: AsyncConnection[TupleRow], rows: Sequence[LedgerRow]) -> int:
    values = ([row.day for row in rows], [row.id for row in rows], [row.verdict for row in rows])
    cursor = await connection.execute(_LATE, values)
    row = await cursor.fetchone()
    return row[0] if row else 0


async def _reject(connection: AsyncConnection[TupleRow], refused: Sequence[Rejected]) -> None:
    if not refused:
        return
    values = [(one.shard, one.at.nonce, one.at.entry, one.problem, Jsonb(_readable(one.fields))) for one in refused]
    async with connection.cursor() as cursor:
        await cursor.executemany(_REJECT, values)


def _readable(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """Text that jsonb can hold: no NUL, no broken UTF-8, and not more of it than a person reads."""
    return {_clean(name): _clean(value) for name, value in list(fields.items())[:20]}


def _clean(value: bytes) -> str:
    return value[:8000].decode("utf-8", "backslashreplace").replace("\x00", "\\x00")


_REWRITE = f"""
INSERT INTO usage_daily (account_id, day, key_id, model, {", ".join(SUMS)})
SELECT account_id, day, key_id, model, {ROLLUP} FROM requests WHERE day = ANY(%s) GROUP BY account_id, day, key_id, model
"""  # noqa: S608 - built from the tables above alone


async def rewrite_roll_ups(connection: AsyncConnection[TupleRow], days: Sequence[date]) -> None:
    """Roll-ups of these days anew from the rows; for `reconcile` alone. The rows must still be there."""
    async with connection.transaction():
        # A batch locks the table before it inserts its first row, so that none is half done behind this.
        await connection.execute("LOCK TABLE usage_daily IN SHARE ROW EXCLUSIVE MODE")
        await connection.execute("DELETE FROM usage_daily WHERE day = ANY(%s)", (list(days),))
        await connection.execute(_REWRITE.encode(), (list(days),))
