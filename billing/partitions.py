"""The ledger's partitions, one a UTC day: made ahead, and dropped whole when their time is over."""

from collections.abc import Iterable
from datetime import date, timedelta

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from billing.days import date_of

# Any number that nothing else in this database locks: two workers must not make the same partition at once.
_LOCK = 0xFA4E_0DA7
_NAME = "requests_%Y%m%d"

_EXISTING = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'requests'::regclass
"""


async def existing_days(connection: AsyncConnection[TupleRow]) -> set[date]:
    cursor = await connection.execute(_EXISTING)
    return {_date(name) for (name,) in await cursor.fetchall()}


async def make_partitions(connection: AsyncConnection[TupleRow], days: Iterable[int]) -> None:
    """Those that are missing. Attaching locks out neither readers nor writers of other days."""
    wanted = {date_of(day) for day in days}
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for when in sorted(wanted - await existing_days(connection)):
            name = sql.Identifier(when.strftime(_NAME))
            await connection.execute(sql.SQL("CREATE TABLE {} (LIKE requests INCLUDING ALL)").format(name))
            await connection.execute(
                sql.SQL("ALTER TABLE requests ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
                    name, sql.Literal(when), sql.Literal(when + timedelta(days=1))
                )
            )


async def drop_partitions_before(connection: AsyncConnection[TupleRow], day: int) -> list[date]:
    """Returns the days that were dropped. Gives up on a long reader of the ledger rather than hold up the rest."""
    over = sorted(when for when in await existing_days(connection) if when < date_of(day))
    for when in over:
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = '2s'")
            await connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(when.strftime(_NAME))))
    return over


def _date(name: str) -> date:
    digits = name.removeprefix("requests_")
    return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
