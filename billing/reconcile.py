"""Proves that the roll-ups are what the ledger adds up to, by adding it up again."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from billing.ledger import ROLLUP, SUMS, rewrite_roll_ups
from billing.partitions import existing_days

# One statement is one moment: rows and roll-ups are compared as of the same commit, also while the worker runs.
_COMPARE = f"""
WITH summed AS (
  SELECT account_id, day, key_id, model, {ROLLUP} FROM requests WHERE day = ANY(%(days)s) GROUP BY account_id, day, key_id, model
), rolled AS (
  SELECT * FROM usage_daily WHERE day = ANY(%(days)s)
)
SELECT account_id, day, key_id, model,
       {", ".join(f"coalesce(rolled.{name}, 0), coalesce(summed.{name}, 0)" for name in SUMS)}
  FROM rolled FULL JOIN summed USING (account_id, day, key_id, model)
 WHERE ({", ".join(f"rolled.{name}" for name in SUMS)}) IS DISTINCT FROM ({", ".join(f"summed.{name}" for name in SUMS)})
 ORDER BY day, account_id, key_id, model
"""  # noqa: S608 - built from the table of sums alone


@dataclass(frozen=True, slots=True)
class Difference:
    """One sum that is not what its rows add up to."""

    day: date
    account_id: UUID
    key_id: UUID
    model: str
    what: str
    rolled_up: int
    summed: int


@dataclass(frozen=True, slots=True)
class Reconciled:
    """`days` are those that were compared: the ones whose rows are still kept."""

    days: list[date]
    rows: int
    differences: list[Difference]


async def reconcile(connection: AsyncConnection[TupleRow], day: date | None = None) -> Reconciled:
    """All days, or one. A day whose rows were dropped by retention can't be added up again and is left out."""
    days = sorted(kept for kept in await existing_days(connection) if day in (None, kept))
    cursor = await connection.execute(_COMPARE.encode(), {"days": days})
    differences = [one for row in await cursor.fetchall() for one in _differences(row)]
    counted = await connection.execute("SELECT count(*) FROM requests WHERE day = ANY(%s)", (days,))
    row = await counted.fetchone()
    return Reconciled(days, row[0] if row else 0, differences)


async def fix(connection: AsyncConnection[TupleRow], found: Reconciled) -> None:
    """Rewrites the roll-ups of the days that differ."""
    await rewrite_roll_ups(connection, sorted({one.day for one in found.differences}))


def _differences(row: TupleRow) -> list[Difference]:
    account_id, day, key_id, model, *sums = row
    pairs = zip(SUMS, sums[::2], sums[1::2], strict=True)
    return [Difference(day, account_id, key_id, model, *pair) for pair in pairs if pair[1] != pair[2]]
