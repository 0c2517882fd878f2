"""What the record knows of one account and day, in one snapshot: the base on which a counter that vanished is rebuilt."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from billing.days import date_of
from billing.reader import TIMEOUT_SECONDS, Reader

BASE = """
SELECT (SELECT version FROM accounts WHERE id = %(account)s) AS version,
       coalesce(sum(u.fares), 0)::bigint AS used,
       coalesce(sum(u.fares) FILTER (WHERE u.key_id = %(key)s), 0)::bigint AS key_used,
       coalesce(sum(u.hangups), 0)::bigint AS hangups,
       (SELECT nonce FROM stream_positions WHERE shard = %(shard)s) AS nonce,
       (SELECT position FROM stream_positions WHERE shard = %(shard)s) AS position,
       ARRAY(SELECT id::text FROM requests WHERE day = %(day)s AND id = ANY(%(candidates)s)) AS recorded
  FROM usage_daily u
 WHERE u.account_id = %(account)s AND u.day = %(day)s
"""


class AccountUnknown(Exception):
    """There is no such account."""


@dataclass(frozen=True, slots=True)
class Base:
    """As of one moment. `used` and `key_used` are fares posted on the day; `hangups` were before output, billed or not.

    `nonce` and `position` say how far into the shard's stream that goes ('' and '0-0': from its start); `recorded` are the
    candidates that are already among them.
    """

    version: int
    used: int
    key_used: int
    hangups: int
    nonce: str
    position: str
    recorded: frozenset[str]


class RecordSource:
    """Bases from PostgreSQL, over connections of its own."""

    def __init__(self, database_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._reader = Reader(database_url, timeout_seconds=timeout_seconds)

    async def open(self) -> None:
        """Waits for nothing."""
        await self._reader.open()

    async def close(self) -> None:
        await self._reader.close()

    async def base(self, *, account: str, key: str, day: int, shard: int, candidates: Iterable[str] = ()) -> Base:
        """`day` in days since 1970-01-01; `candidates` are request ids of that day. Raises: RecordUnavailable, AccountUnknown."""
        values = {
            "account": UUID(account),
            "key": UUID(key),
            "day": date_of(day),
            "shard": shard,
            "candidates": [UUID(candidate) for candidate in candidates],
        }
        [row] = await self._reader.ask(BASE, values)
        if row["version"] is None:
            raise AccountUnknown(f"there is no account {account}")
        return Base(
            version=row["version"],
            used=row["used"],
            key_used=row["key_used"],
            hangups=row["hangups"],
            nonce=row["nonce"] or "",
            position=row["position"] or "0-0",
            recorded=frozenset(row["recorded"]),
        )
