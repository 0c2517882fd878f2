"""A typed command's type, and rows of the ledger as the worker writes them, for commands to read."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from typer.testing import Result

from billing.days import DAY_MS
from billing.ledger import Placed, Position, record
from billing.meter import parse
from billing.partitions import make_partitions
from tests.billing.events import event, fields

Run = Callable[..., Result]


def write_rows(database_url: str, calls: Sequence[dict[str, Any]], *, days_ago: int = 0) -> None:
    """One row for each: what is said of a call goes into its event, `verdict` and `reason` beside it."""
    asyncio.run(_write(database_url, calls, int(time.time() * 1000) - days_ago * DAY_MS))


async def _write(database_url: str, calls: Sequence[dict[str, Any]], at_ms: int) -> None:
    today = at_ms // DAY_MS
    entries = [_entry(at_ms, call) for call in calls]
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await make_partitions(connection, [today])
        found = [Placed(parse(entry, range(today, today + 1)), 0, Position("n", "1-0"), entry) for entry in entries]
        async with connection.transaction():
            done = await record(connection, found, [], [])
    assert (done.inserted, done.rejected) == (len(calls), 0)


def _entry(at_ms: int, call: dict[str, Any]) -> dict[Any, Any]:
    facts = dict(call)
    verdict, reason = facts.pop("verdict", "posted"), facts.pop("reason", "answered")
    return fields(event(at_ms, **facts), verdict, reason)
