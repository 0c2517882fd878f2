"""What the ledger has of some accounts' days: read in one transaction, so that all of it is of one moment."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from billing.days import date_of, day_number
from billing.ledger import Position

_SUMS = """
SELECT account_id::text, key_id::text, day, sum(fares)::bigint, sum(pack_fares)::bigint, sum(hangups)::bigint FROM usage_daily
 WHERE account_id = ANY(%s) AND day = ANY(%s) GROUP BY account_id, key_id, day
"""
_PACKS = """
SELECT account_id::text, sum(pack_fares)::bigint FROM usage_daily WHERE account_id = ANY(%s) AND pack_fares > 0 GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class DaySum:
    """Of an account, a key and a day (since 1970-01-01): fares posted, of the quota and of packs, and hang-ups before output,
    billed or not."""

    account: str
    key: str
    day: int
    fares: int
    pack_fares: int
    hangups: int


@dataclass(frozen=True, slots=True)
class DaySums:
    """`packs` are the accounts' fares of packs, of all days."""

    days: Sequence[DaySum]
    packs: Mapping[str, int]


@asynccontextmanager
async def one_moment(connection: AsyncConnection[TupleRow]) -> AsyncIterator[None]:
    """Whatever is asked in here is answered as of the first question. `connection` is in autocommit."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


async def position_of(connection: AsyncConnection[TupleRow], shard: int) -> Position | None:
    """How far into the shard's stream the ledger is; None: it was never read."""
    cursor = await connection.execute("SELECT nonce, position FROM stream_positions WHERE shard = %s", (shard,))
    row = await cursor.fetchone()
    return None if row is None else Position(*row)


async def day_sums(connection: AsyncConnection[TupleRow], accounts: Iterable[str], days: Sequence[int]) -> DaySums:
    ids = [UUID(account) for account in accounts]
    cursor = await connection.execute(_SUMS, (ids, [date_of(day) for day in days]))
    sums = [DaySum(account, key, day_number(day), *counts) for account, key, day, *counts in await cursor.fetchall()]
    cursor = await connection.execute(_PACKS, (ids,))
    return DaySums(sums, dict(await cursor.fetchall()))


async def keys_of(connection: AsyncConnection[TupleRow], accounts: Iterable[str]) -> dict[str, str]:
    """The account of each key."""
    query = "SELECT id::text, account_id::text FROM keys WHERE account_id = ANY(%s)"
    cursor = await connection.execute(query, ([UUID(account) for account in accounts],))
    return dict(await cursor.fetchall())


async def known_ids(connection: AsyncConnection[TupleRow], ids: Iterable[str], days: Sequence[int]) -> set[str]:
    """Those of the request ids that have a row."""
    asked = ([date_of(day) for day in days], [UUID(request_id) for request_id in ids])
    cursor = await connection.execute("SELECT id::text FROM requests WHERE day = ANY(%s) AND id = ANY(%s)", asked)
    return {found for (found,) in await cursor.fetchall()}
