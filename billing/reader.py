"""Short questions to PostgreSQL from a process that must not hang: a few connections, and one second for an answer."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from billing.conninfo import conninfo

TIMEOUT_SECONDS = 1.0


class RecordUnavailable(Exception):
    """PostgreSQL did not answer in time, or not at all; nothing is known of what was asked."""


class Reader:
    """Connections are opened when they are needed; PostgreSQL may come and go."""

    def __init__(self, database_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, connections: int = 4) -> None:
        self._timeout_seconds = timeout_seconds
        self._asked: set[asyncio.Task[list[DictRow]]] = set()
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[DictRow]] = AsyncConnectionPool(
            conninfo(database_url),
            min_size=0,
            max_size=connections,
            open=False,
            timeout=timeout_seconds,
            # Give up on a connection soon: the next question tries again, so nothing waits out a long back-off.
            reconnect_timeout=timeout_seconds,
            check=AsyncConnectionPool.check_connection,
            # Prepared statements would save little here, and break behind a pooler such as PgBouncer.
            kwargs={"autocommit": True, "row_factory": dict_row, "connect_timeout": 2, "prepare_threshold": None},
        )

    async def open(self) -> None:
        """Waits for nothing."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        for task in self._asked:
            task.cancel()
        await asyncio.wait({asyncio.ensure_future(self._pool.close(timeout=self._timeout_seconds))}, timeout=2.0)

    async def ask(self, query: str, values: Mapping[str, Any] | Sequence[Any]) -> list[DictRow]:
        """Raises: RecordUnavailable, after `timeout_seconds` at the latest, even if PostgreSQL is frozen."""
        # Cancelling a query waits for the server, so a late one is left to itself instead of being cancelled.
        task = asyncio.ensure_future(self._query(query, values))
        self._asked.add(task)
        task.add_done_callback(self._forget)
        done, _ = await asyncio.wait({task}, timeout=self._timeout_seconds)
        if not done:
            raise RecordUnavailable(f"PostgreSQL did not answer within {self._timeout_seconds} s")
        try:
            return task.result()
        except (psycopg.OperationalError, PoolTimeout, OSError) as error:
            raise RecordUnavailable(f"PostgreSQL can't be asked: {error}") from error

    def _forget(self, task: asyncio.Task[list[DictRow]]) -> None:
        self._asked.discard(task)
        if not task.cancelled():
            task.exception()  # seen here, so that a query nobody waits for any more is not reported as lost

    async def _query(self, query: str, values: Mapping[str, Any] | Sequence[Any]) -> list[DictRow]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(query.encode(), values)
            return await cursor.fetchall()
