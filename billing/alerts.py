"""Alerts of a day's quota: noticed from the roll-ups once for each account, day and threshold, and handed out until delivered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row

from billing.facts import SOME, at_ms, term_from_row

# Percent of the day's quota.
THRESHOLDS = (50, 80, 100)
# After a try that failed; about seven hours later nobody tries any more.
TRY_AGAIN_SECONDS = (5, 30, 120, 600, 1800, 3600, 7200, 10800)
# Whoever took an alert to deliver it and died has it taken from him after this.
TAKEN_SECONDS = 60
_PROBLEM_LENGTH = 300

_USED = "SELECT account_id, sum(fares)::bigint FROM usage_daily WHERE day = %s GROUP BY account_id HAVING sum(fares) > 0"
# Of several that are reached at once only the highest is told; the others are noted, so that they are not told later.
_NOTE = """
INSERT INTO alerts (account_id, kind, day, threshold, used, quota, reached_at, next_try_at)
SELECT e.account_id, 'quota', %(day)s, e.threshold, e.used, e.quota, %(now)s,
       CASE WHEN e.is_highest AND EXISTS (SELECT FROM alert_targets t WHERE t.account_id = e.account_id) THEN %(now)s END
  FROM unnest(%(accounts)s::uuid[], %(thresholds)s::int[], %(used)s::bigint[], %(quotas)s::bigint[], %(highest)s::bool[])
       AS e (account_id, threshold, used, quota, is_highest)
ON CONFLICT DO NOTHING
"""
_TAKE = """
WITH due AS (
  SELECT account_id, kind, day, threshold FROM alerts WHERE delivered_at IS NULL AND next_try_at <= %(now)s
   ORDER BY next_try_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE alerts a SET tries = a.tries + 1, next_try_at = CASE WHEN t.account_id IS NOT NULL THEN %(until)s::timestamptz END
    FROM due LEFT JOIN alert_targets t USING (account_id)
   WHERE (a.account_id, a.kind, a.day, a.threshold) = (due.account_id, due.kind, due.day, due.threshold)
  RETURNING a.account_id, a.day, a.threshold, a.used, a.quota, a.reached_at, a.tries, t.url, t.salt
)
SELECT taken.*, accounts.name FROM taken JOIN accounts ON accounts.id = taken.account_id WHERE taken.url IS NOT NULL
"""
_DONE = """
UPDATE alerts SET delivered_at = %(delivered_at)s, next_try_at = %(next_try_at)s, problem = %(problem)s
 WHERE account_id = %(account_id)s AND kind = 'quota' AND day = %(day)s AND threshold = %(threshold)s AND delivered_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class Due:
    """An alert that has to be delivered; `tries` counts this one."""

    account_id: UUID
    day: date
    threshold: int
    used: int
    quota: int
    reached_at: datetime
    tries: int
    url: str
    salt: bytes
    account_name: str

    @property
    def id(self) -> str:
        """The same at every try, so that a receiver can drop what came twice."""
        return f"quota_{self.account_id}_{self.day:%Y%m%d}_{self.threshold}"


def reached(used: int, quota: int | None) -> list[int]:
    """The thresholds that are reached, lowest first; a plan without a quota, or with none left to use, reaches none."""
    return [threshold for threshold in THRESHOLDS if quota and used * 100 >= threshold * quota]


async def used_by_account(connection: AsyncConnection[TupleRow], day: date) -> dict[UUID, int]:
    """Fares of the day, of every account that has any."""
    cursor = await connection.execute(_USED, (day,))
    return dict(await cursor.fetchall())


async def quotas_of(
    connection: AsyncConnection[TupleRow], accounts: Sequence[UUID], now: datetime, grace_days: int
) -> dict[UUID, int]:
    """Fares a day by the plans that they have now, of those that have a quota."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(SOME.encode(), {"ids": list(accounts)})
    terms = {row["id"]: term_from_row(row, at_ms(now), grace_days) for row in await cursor.fetchall()}
    return {account: term.plan.quota_per_day for account, term in terms.items() if term.plan.quota_per_day}


async def note(
    connection: AsyncConnection[TupleRow], used: Mapping[UUID, int], quotas: Mapping[UUID, int], day: date, now: datetime
) -> int:
    """How many thresholds are reached that were not before."""
    found = [
        (account, threshold, used[account], quota, threshold == thresholds[-1])
        for account, quota in quotas.items()
        for thresholds in [reached(used[account], quota)]
        for threshold in thresholds
    ]
    if not found:
        return 0
    names = ("accounts", "thresholds", "used", "quotas", "highest")
    columns = {name: list(column) for name, column in zip(names, zip(*found, strict=True), strict=True)}
    cursor = await connection.execute(_NOTE, {**columns, "day": day, "now": now})
    return cursor.rowcount


async def take_due(connection: AsyncConnection[TupleRow], now: datetime, *, limit: int) -> list[Due]:
    """Those that are to be tried now, each by one worker; what is neither delivered nor failed comes back a minute later."""
    asked = {"now": now, "limit": limit, "until": now + timedelta(seconds=TAKEN_SECONDS)}
    cursor = await connection.execute(_TAKE, asked)
    return [Due(*row) for row in await cursor.fetchall()]


async def delivered(connection: AsyncConnection[TupleRow], due: Due, now: datetime) -> None:
    await _end(connection, due, delivered_at=now, next_try_at=None, problem=None)


async def failed(connection: AsyncConnection[TupleRow], due: Due, now: datetime, problem: str) -> None:
    """It is tried again later, unless it was the last time."""
    left = TRY_AGAIN_SECONDS[due.tries - 1 :]
    again = now + timedelta(seconds=left[0]) if left else None
    await _end(connection, due, delivered_at=None, next_try_at=again, problem=problem[:_PROBLEM_LENGTH])


async def _end(connection: AsyncConnection[TupleRow], due: Due, **values: datetime | str | None) -> None:
    which = {"account_id": due.account_id, "day": due.day, "threshold": due.threshold}
    await connection.execute(_DONE, which | values)
