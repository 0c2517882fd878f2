"""What the record knows of one account and day, in one snapshot: the base on which a counter that vanished is rebuilt."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from billing.days import date_of, day_of_id
from billing.reader import TIMEOUT_SECONDS, Reader
from billing.unknown import AccountUnknown

RECORDED = """
SELECT (SELECT version FROM accounts WHERE id = %(account)s) AS version,
       coalesce(sum(u.fares), 0)::bigint AS used,
       coalesce(sum(u.fares + u.pack_fares) FILTER (WHERE u.key_id = %(key)s), 0)::bigint AS key_used,
       coalesce(sum(u.hangups), 0)::bigint AS hangups,
       ARRAY(SELECT id::text FROM requests WHERE day = ANY(%(days)s) AND id = ANY(%(candidates)s)) AS known,
       (SELECT coalesce(sum(p.pack_fares), 0)::bigint FROM usage_daily p
         WHERE p.account_id = %(account)s AND p.pack_fares > 0) AS pack_used,
       (SELECT coalesce(sum(p.pack_fares), 0)::bigint FROM usage_daily p
         WHERE p.account_id = %(account)s AND p.pack_fares > 0
           AND date_trunc('month', p.day) = date_trunc('month', %(day)s::date)) AS pack_used_this_month
  FROM usage_daily u
 WHERE u.account_id = %(account)s AND u.day = %(day)s
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """As of one moment. `used` and `key_used` are fares posted on the day, the key's with those from packs; `hangups` were before
    output, billed or not; `pack_used` are fares from packs, ever and in the day's month; `known` are the candidates that are
    counted in these."""

    version: int
    used: int
    key_used: int
    hangups: int
    known: frozenset[str]
    pack_used: int = 0
    pack_used_this_month: int = 0


class RecordSource:
    """Reads over connections of its own."""

    def __init__(self, database_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._reader = Reader(database_url, timeout_seconds=timeout_seconds)

    async def open(self) -> None:
        """Waits for nothing."""
        await self._reader.open()

    async def close(self) -> None:
        await self._reader.close()

    async def __call__(self, account: str, key: str, day: int, candidates: Iterable[str]) -> Recorded:
        """`day` in days since 1970-01-01; `candidates` are request ids. Raises: RecordUnavailable, AccountUnknown."""
        ids = dict(_ids(candidates))
        values = {
            "account": UUID(account), "key": UUID(key), "day": date_of(day), "candidates": list(ids),
            "days": sorted({*ids.values()}),
        }  # fmt: skip
        [row] = await self._reader.ask(RECORDED, values)
        if row["version"] is None:
            raise AccountUnknown(f"there is no account {account}")
        row["known"] = frozenset(row["known"])
        return Recorded(**row)


def _ids(candidates: Iterable[str]) -> Iterator[tuple[UUID, date]]:
    """With the day of each. What is no id can't be in the ledger either."""
    for candidate in candidates:
        try:
            yield UUID(candidate), date_of(day_of_id(candidate))
        except (ValueError, OverflowError):
            continue
