"""What the record knows of one account and day, in one snapshot: the base on which a counter that vanished is rebuilt."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from billing.changes import AccountUnknown
from billing.days import date_of
from billing.reader import TIMEOUT_SECONDS, Reader

RECORDED = """
SELECT (SELECT version FROM accounts WHERE id = %(account)s) AS version,
       coalesce(sum(u.fares), 0)::bigint AS used,
       coalesce(sum(u.fares) FILTER (WHERE u.key_id = %(key)s), 0)::bigint AS key_used,
       coalesce(sum(u.hangups), 0)::bigint AS hangups,
       ARRAY(SELECT id::text FROM requests WHERE day = %(day)s AND id = ANY(%(candidates)s)) AS known
  FROM usage_daily u
 WHERE u.account_id = %(account)s AND u.day = %(day)s
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """As of one moment. `used` and `key_used` are fares posted on the day; `hangups` were before output, billed or not;
    `known` are the candidates that are counted in these."""

    version: int
    used: int
    key_used: int
    hangups: int
    known: frozenset[str]


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
        values = {"account": UUID(account), "key": UUID(key), "day": date_of(day), "candidates": list(_ids(candidates))}
        [row] = await self._reader.ask(RECORDED, values)
        if row["version"] is None:
            raise AccountUnknown(f"there is no account {account}")
        return Recorded(row["version"], row["used"], row["key_used"], row["hangups"], frozenset(row["known"]))


def _ids(candidates: Iterable[str]) -> Iterator[UUID]:
    """What is no id can't be in the ledger either."""
    for candidate in candidates:
        try:
            yield UUID(candidate)
        except ValueError:
            continue
