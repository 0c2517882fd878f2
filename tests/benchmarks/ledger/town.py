"""A ledger of any size: accounts of every weight, their keys and models, and rows as calls leave them, made by the server."""

from dataclasses import dataclass
from datetime import date, timedelta

import psycopg
from psycopg.rows import TupleRow

from billing.days import EPOCH
from billing.ledger import rewrite_roll_ups
from billing.partitions import make_partitions

Connection = psycopg.AsyncConnection[TupleRow]

_ACCOUNTS = """
INSERT INTO accounts (id, name, email, plan_code, plan_version)
SELECT uuidv7(), 'account-' || n, 'a@example.com',
       CASE WHEN mod(n, 10) = 0 THEN 'premium' WHEN mod(n, 3) = 0 THEN 'pro' ELSE 'free' END, 1
  FROM generate_series(1, %(accounts)s) n
"""
_KEYS = """
INSERT INTO keys (id, account_id, hash, prefix, last4, name, scopes)
SELECT uuidv7(), id, sha256((id::text || n)::bytea), 'fare_live_', '0000', 'key ' || n, '{inference}'
  FROM accounts, generate_series(1, 2) n
"""
# The n-th account calls about n times as rarely as the first (Zipf), and each call is drawn: nineteen of twenty are answered.
_ROWS = """
INSERT INTO requests (day, id, account_id, key_id, model, endpoint, fare, verdict, reason, stream, status, at, queue_ms,
                      first_byte_ms, total_ms, prompt_tokens, cached_tokens, completion_tokens, tokens_estimated, replica,
                      gateway)
SELECT %(day)s, uuidv7(at - clock_timestamp()), w.account_id, w.keys[1 + mod(n, 2)], 'model-' || mod(n, 5), 'chat.completions',
       1 + (mod(n, 11) = 0)::int, CASE WHEN mod(n, 20) > 0 THEN 'posted' WHEN mod(n, 40) > 0 THEN 'voided' ELSE 'expired' END,
       CASE WHEN mod(n, 20) > 0 THEN 'answered' WHEN mod(n, 40) > 0 THEN 'left_before_output' ELSE 'gateway_died' END,
       mod(n, 3) = 0, 200, at, mod(n, 50), 100 + mod(n, 900), 500 + mod(n, 9000), 100 + mod(n, 4000), mod(n, 100),
       10 + mod(n, 700), false, 'replica-' || mod(n, 8), 'gateway-1'
  FROM (SELECT n, %(day)s::date::timestamp AT TIME ZONE 'UTC' + n * interval '1 day' / (%(rows)s + 1) AS at,
               width_bucket(random(), (SELECT starts FROM pg_temp.weights_starts)) AS place
          FROM generate_series(1, %(rows)s) n) drawn
  JOIN pg_temp.weights w USING (place)
"""
_WEIGHTS = """
CREATE TEMP TABLE weights AS
SELECT row_number() OVER (ORDER BY a.name) AS place, a.id AS account_id, array_agg(k.id) AS keys
  FROM accounts a JOIN keys k ON k.account_id = a.id GROUP BY a.id, a.name;
CREATE TEMP TABLE weights_starts AS
SELECT array_agg(start::float8 ORDER BY place) AS starts
  FROM (SELECT place, coalesce(sum(1.0 / place) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                      / sum(1.0 / place) OVER () AS start FROM weights) s;
ANALYZE weights
"""


@dataclass(frozen=True, slots=True)
class Size:
    """`rows` over `days`, the last of which is `last`."""

    rows: int
    days: int
    accounts: int
    last: date

    def each_day(self) -> list[date]:
        return [self.last - timedelta(days=ago) for ago in range(self.days)]


async def settle(connection: Connection, size: Size) -> None:
    """Accounts and keys, in a database that has plans; `connection` is in autocommit."""
    await connection.execute(_ACCOUNTS, {"accounts": size.accounts})
    await connection.execute(_KEYS)
    for statement in _WEIGHTS.split(";"):
        await connection.execute(statement.encode())
    await make_partitions(connection, [(day - EPOCH).days for day in size.each_day()])


async def write_day(connection: Connection, size: Size, day: date) -> None:
    """The day's rows, and their roll-ups; after `settle`, on the same connection."""
    await connection.execute(_ROWS, {"day": day, "rows": size.rows // size.days})
    await rewrite_roll_ups(connection, [day])


async def busiest_account(connection: Connection) -> str:
    cursor = await connection.execute(
        "SELECT account_id::text FROM usage_daily GROUP BY account_id ORDER BY sum(posted) DESC LIMIT 1"
    )
    row = await cursor.fetchone()
    assert row is not None
    return str(row[0])
