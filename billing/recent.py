"""An account's latest calls, newest first, from as few days of the ledger as hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, text

# Most accounts have a page of calls in two days; each further look costs one index probe a day.
DAYS_LOOKED_AT = (2, 30, 3660)

# In one day's partition the index has this order already; of several days the newest of each are merged.
LATEST = """
SELECT id, at, key_id, model, endpoint, fare, CASE verdict WHEN 'posted' THEN fare ELSE 0 END AS billed, verdict, reason, status,
       total_ms, prompt_tokens, completion_tokens
  FROM requests
 WHERE account_id = :account AND day BETWEEN :first AND :last AND at < :before
 ORDER BY at DESC LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class Call:
    """`fare` is what was held, `billed` what was taken."""

    id: UUID
    at: datetime
    key_id: UUID
    model: str
    endpoint: str
    fare: int
    billed: int
    verdict: str
    reason: str
    status: int | None
    total_ms: int | None
    prompt_tokens: int | None
    completion_tokens: int | None


def latest_calls(connection: Connection, account_id: UUID, before: datetime, *, limit: int = 50) -> Sequence[Call]:
    """Those that came before this moment; the next page is before the last of this one."""
    calls: Sequence[Call] = ()
    for days in DAYS_LOOKED_AT:
        calls = [Call(*row) for row in connection.execute(text(LATEST), asked(account_id, before, days, limit))]
        if len(calls) == limit:
            break
    return calls


def asked(account_id: UUID, before: datetime, days: int, limit: int) -> dict[str, UUID | datetime | date | int]:
    last = before.date()
    return {"account": account_id, "first": last - timedelta(days=days - 1), "last": last, "before": before, "limit": limit}
