"""The ledger's partitions, one a UTC day: made ahead, and taken away whole when their time is over; no writer waits for it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import date, timedelta

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from billing.days import date_of

# Any numbers that nothing else in this database locks: two workers must not make, or take away, the same partition at once.
_MAKING, _RETENTION = 0xFA4E_0DA7, 0xFA4E_0DA8
_NAME = "requests_%Y%m%d"
# How long retention waits for those that read the ledger. Nobody waits for it meanwhile, and the next turn goes on.
WAIT_SECONDS = 30.0

# A partition whose detaching has begun is read by no new query.
_ATTACHED = """
SELECT c.relname, i.inhdetachpending FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'requests'::regclass
"""
# Detached, and its worker died before it was dropped.
_DETACHED = r"""
SELECT c.relname FROM pg_class c
 WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'requests'::regclass) AND c.relkind = 'r'
   AND c.relname ~ '^requests_\d{8}$' AND NOT c.relispartition
"""


async def existing_days(connection: AsyncConnection[TupleRow]) -> set[date]:
    """Days whose rows are in the ledger."""
    return {when for when, is_leaving in (await _attached(connection)).items() if not is_leaving}


async def make_partitions(connection: AsyncConnection[TupleRow], days: Iterable[int]) -> None:
    """Those that are missing. Attaching an empty table shares the ledger with its readers and writers.

    A day that retention had let go, and that is wanted again, comes back with its rows if they are still there.
    """
    wanted = {date_of(day) for day in days}
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
        for when in sorted(wanted - (await _attached(connection)).keys()):
            name = sql.Identifier(when.strftime(_NAME))
            await connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} (LIKE requests INCLUDING ALL)").format(name))
            await connection.execute(
                sql.SQL("ALTER TABLE requests ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
                    name, sql.Literal(when), sql.Literal(when + timedelta(days=1))
                )
            )


async def drop_partitions_before(
    connection: AsyncConnection[TupleRow], day: int, *, wait_seconds: float = WAIT_SECONDS
) -> list[date]:
    """Returns the days that are gone; `connection` is in autocommit.

    Detaching waits for the queries that were there before it, and new ones don't wait for it (a plain DROP would stand before
    all of them). What was cut off on the way is finished first. Behind a reader that stays too long it gives up for now.
    """
    gone: list[date] = []
    async with _alone(connection, wait_seconds) as is_alone:
        if not is_alone:
            return gone
        try:
            for when, how in await _over(connection, date_of(day)):
                name = sql.Identifier(when.strftime(_NAME))
                if how is not None:
                    await connection.execute(sql.SQL("ALTER TABLE requests DETACH PARTITION {} {}").format(name, how))
                await connection.execute(sql.SQL("DROP TABLE {}").format(name))
                gone.append(when)
        except psycopg.errors.LockNotAvailable:
            return gone
    return gone


@asynccontextmanager
async def _alone(connection: AsyncConnection[TupleRow], wait_seconds: float) -> AsyncIterator[bool]:
    """Whether no other worker is at it."""
    await connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{round(wait_seconds * 1000)}ms",))
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_RETENTION,))
    is_alone = await cursor.fetchone() == (True,)
    try:
        yield is_alone
    finally:
        if is_alone:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (_RETENTION,))
        await connection.execute("RESET lock_timeout")


async def _over(connection: AsyncConnection[TupleRow], first_kept: date) -> list[tuple[date, sql.SQL | None]]:
    """Days whose time is over, and how each leaves the ledger: of those begun, the rest of the way, before any new one."""
    attached = await _attached(connection)
    begun = [(when, sql.SQL("FINALIZE")) for when, is_leaving in attached.items() if is_leaving]
    cursor = await connection.execute(_DETACHED)
    detached = [(when, None) for (name,) in await cursor.fetchall() if (when := _date(name)) < first_kept]
    anew = [(when, sql.SQL("CONCURRENTLY")) for when, is_leaving in attached.items() if not is_leaving and when < first_kept]
    return [*sorted(begun, key=_when), *sorted(detached, key=_when), *sorted(anew, key=_when)]


async def _attached(connection: AsyncConnection[TupleRow]) -> dict[date, bool]:
    """The partitions, and whether each is on its way out."""
    cursor = await connection.execute(_ATTACHED)
    return {_date(name): is_leaving for name, is_leaving in await cursor.fetchall()}


def _when(found: tuple[date, sql.SQL | None]) -> date:
    return found[0]


def _date(name: str) -> date:
    digits = name.removeprefix("requests_")
    return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
