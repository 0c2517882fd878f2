"""The one indexed query that turns the HMAC of a key into a caller."""

from datetime import datetime

from psycopg.rows import DictRow

from billing.facts import FACTS, terms_from_row
from billing.reader import TIMEOUT_SECONDS, Reader, RecordUnavailable
from gateway.access.caller import Caller

FIND_KEY = f"""
SELECT k.id AS key_id, k.scopes, k.allowed_models, k.networks, k.expires_at, k.revoked_at IS NOT NULL AS revoked,
       k.quota_per_day AS key_quota_per_day, k.requests_per_minute AS key_requests_per_minute,
       a.id AS account_id, a.name AS account_name, a.state AS account_state, a.version AS account_version,
       a.pack_fares_per_month, (SELECT coalesce(sum(b.fares - coalesce(b.taken_back, 0)), 0)::bigint
                                  FROM packs b WHERE b.account_id = a.id) AS pack_fares,{FACTS}
  FROM keys k
  JOIN accounts a ON a.id = k.account_id
  JOIN plans p ON p.code = a.plan_code AND p.version = a.plan_version
 WHERE k.hash = %(hash)s
"""  # noqa: S608 - put together from constants


class KeyStoreUnavailable(Exception):
    """PostgreSQL did not answer in time, so nothing is known about the key; it may well be good."""


class KeyStore:
    """Keys as PostgreSQL has them, over connections of its own."""

    def __init__(self, database_url: str, *, grace_days: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._grace_days = grace_days
        self._reader = Reader(database_url, timeout_seconds=timeout_seconds)

    async def open(self) -> None:
        """Waits for nothing: PostgreSQL may come later."""
        await self._reader.open()

    async def close(self) -> None:
        await self._reader.close()

    async def find(self, digest: bytes) -> Caller | None:
        """Raises: KeyStoreUnavailable, within about a second."""
        try:
            rows = await self._reader.ask(FIND_KEY, {"hash": digest})
        except RecordUnavailable as error:
            raise KeyStoreUnavailable("Keys can't be looked up at present. Try again shortly.") from error
        return _caller(rows[0], digest, self._grace_days) if rows else None


def _caller(row: DictRow, digest: bytes, grace_days: int) -> Caller:
    """With the first of its plans: whoever hands it out moves it on to the plan of now."""
    first, *later = terms_from_row(row, grace_days)
    allowed: list[str] | None = row["allowed_models"]
    return Caller(
        account_id=str(row["account_id"]),
        key_id=str(row["key_id"]),
        account_name=row["account_name"],
        account_state=row["account_state"],
        version=row["account_version"],
        plan=first.plan,
        source=first.source,
        until_ms=first.until,
        later=tuple(later),
        scopes=frozenset(row["scopes"]),
        allowed_models=None if allowed is None else frozenset(allowed),
        networks=tuple(row["networks"] or ()),
        expires_at_ms=_milliseconds(row["expires_at"]),
        revoked=row["revoked"],
        key_quota_per_day=row["key_quota_per_day"],
        key_requests_per_minute=row["key_requests_per_minute"],
        pack_fares=row["pack_fares"],
        pack_fares_per_month=row["pack_fares_per_month"],
        digest=digest,
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
