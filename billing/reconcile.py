"""Proves that the roll-ups are what the ledger adds up to, by adding it up again."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from billing.ledger import ROLLUP, SUMS, rewrite_roll_ups
from billing.partitions import existing_days

# One statement is one moment: rows and roll-ups are compared as of the same commit, also while the worker runs. The first
# line counts the rows and is of no account.
_COMPARE = f"""
WITH summed AS MATERIALIZED (
  SELECT account_id, key_id, model, count(*) AS rows, {ROLLUP}
    FROM requests WHERE day = %(day)s GROUP BY account_id, key_id, model
), rolled AS (
  SELECT * FROM usage_daily WHERE day = %(day)s
)
SELECT coalesce(sum(rows), 0)::bigint, NULL::uuid, NULL::uuid, NULL, {", ".join("0, 0" for _ in SUMS)} FROM summed
UNION ALL
SELECT 0, account_id, key_id, model,
       {", ".join(f"coalesce(rolled.{name}, 0), coalesce(summed.{name}, 0)" for name in SUMS)}
  FROM rolled FULL JOIN summed USING (account_id, key_id, model)
 WHERE ({", ".join(f"rolled.{name}" for name in SUMS)}) IS DISTINCT FROM ({", ".join(f"summed.{name}" for name in SUMS)})
 ORDER BY 2 NULLS FIRST, 3, 4
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
    """All days, or one, each in a statement of its own: a day is compared as of one moment, and no snapshot is held for long.

    A day whose rows were dropped by retention can't be added up again and is left out.
    """
    days = sorted(kept for kept in await existing_days(connection) if day in (None, kept))
    rows, differences = 0, []
    for each in days:
        cursor = await connection.execute(_COMPARE.encode(), {"day": each})
        for found in await cursor.fetchall():
            rows += found[0]
            differences += _differences(each, found[1:])
    return Reconciled(days, rows, differences)


async def repair(connection: AsyncConnection[TupleRow], found: Reconciled) -> None:
    """Rewrites the roll-ups of the days that differ."""
    await rewrite_roll_ups(connection, sorted({one.day for one in found.differences}))


def _differences(day: date, row: TupleRow) -> list[Difference]:
    """Of an account, a key and a model; none of the row that only counts."""
    account_id, key_id, model, *sums = row
    pairs = zip(SUMS, sums[::2], sums[1::2], strict=True)
    return [Difference(day, account_id, key_id, model, *pair) for pair in pairs if account_id and pair[1] != pair[2]]
