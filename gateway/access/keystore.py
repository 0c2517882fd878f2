"""The one indexed query that turns the HMAC of a key into a caller, with time-outs short enough for the paid path."""

import asyncio
from datetime import datetime

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from billing.database import conninfo
from billing.plans import plan_from_row
from gateway.access.caller import Caller

TIMEOUT_SECONDS = 1.0

FIND_KEY = """
SELECT k.id AS key_id, k.scopes, k.allowed_models, k.networks, k.expires_at, k.revoked_at IS NOT NULL AS revoked,
       k.quota_per_day AS key_quota_per_day, k.requests_per_minute AS key_requests_per_minute,
       a.id AS account_id, a.name AS account_name, a.state AS account_state, a.version AS account_version, p.*
  FROM keys k
  JOIN accounts a ON a.id = k.account_id
  JOIN plans p ON p.code = a.plan_code AND p.version = a.plan_version
 WHERE k.hash = %s
"""


class KeyStoreUnavailable(Exception):
    """PostgreSQL did not answer in time, so nothing is known about the key; it may well be good."""


class KeyStore:
    """A few connections to PostgreSQL for keys alone, opened when they are needed."""

    def __init__(self, database_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._asked: set[asyncio.Task[Caller | None]] = set()
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[DictRow]] = AsyncConnectionPool(
            conninfo(database_url),
            min_size=0,
            max_size=4,
            open=False,
            timeout=timeout_seconds,
            # Give up on a connection soon: the next miss tries again, so nothing waits out a long back-off.
            reconnect_timeout=timeout_seconds,
            check=AsyncConnectionPool.check_connection,
            kwargs={"autocommit": True, "row_factory": dict_row, "connect_timeout": 2, "prepare_threshold": None},
        )

    async def open(self) -> None:
        """Waits for nothing: PostgreSQL may come later."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        await self._pool.close(timeout=self._timeout_seconds)

    async def find(self, digest: bytes) -> Caller | None:
        """Raises: KeyStoreUnavailable, after `timeout_seconds` at the latest, even if PostgreSQL is frozen."""
        # Cancelling a query waits for the server, so a late one is left to itself instead of being cancelled.
        task = asyncio.ensure_future(self._query(digest))
        self._asked.add(task)
        task.add_done_callback(self._forget)
        done, _ = await asyncio.wait({task}, timeout=self._timeout_seconds)
        if not done:
            raise KeyStoreUnavailable("the key store did not answer in time; try again shortly")
        try:
            return task.result()
        except (psycopg.Error, PoolTimeout, OSError) as error:
            raise KeyStoreUnavailable("the key store is unavailable; try again shortly") from error

    def _forget(self, task: asyncio.Task[Caller | None]) -> None:
        self._asked.discard(task)
        if not task.cancelled():
            task.exception()  # seen here, so that a query nobody waits for any more is not reported as lost

    async def _query(self, digest: bytes) -> Caller | None:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(FIND_KEY, (digest,))
            row = await cursor.fetchone()
        return None if row is None else _caller(row, digest)


def _caller(row: DictRow, digest: bytes) -> Caller:
    allowed: list[str] | None = row["allowed_models"]
    return Caller(
        account_id=str(row["account_id"]),
        key_id=str(row["key_id"]),
        account_name=row["account_name"],
        account_state=row["account_state"],
        version=row["account_version"],
        plan=plan_from_row(row),
        scopes=frozenset(row["scopes"]),
        allowed_models=None if allowed is None else frozenset(allowed),
        networks=tuple(row["networks"] or ()),
        expires_at_ms=_milliseconds(row["expires_at"]),
        revoked=row["revoked"],
        key_quota_per_day=row["key_quota_per_day"],
        key_requests_per_minute=row["key_requests_per_minute"],
        digest=digest,
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
