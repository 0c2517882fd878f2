"""Statements: an account's use by day, key and model, and a receipt for each request, row by row as the database has them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

# So many rows are fetched at a time; what waits to be written never grows beyond them.
ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Statement:
    """`query` selects `columns`, in this order, for `:account` from `:first` to `:last`."""

    columns: tuple[str, ...]
    query: str


# From the roll-ups: fares are of billed calls, those from a pack apart; tokens are of all.
DAILY = Statement(
    ("day", "key_id", "key_name", "model", "fares", "pack_fares", "posted", "voided", "expired", "hangups", "prompt_tokens",
     "cached_tokens", "completion_tokens"),
    """
SELECT u.day, u.key_id, k.name, u.model, u.fares, u.pack_fares, u.posted, u.voided, u.expired, u.hangups, u.prompt_tokens,
       u.cached_tokens, u.completion_tokens
  FROM usage_daily u LEFT JOIN keys k ON k.id = u.key_id
 WHERE u.account_id = :account AND u.day BETWEEN :first AND :last
 ORDER BY u.day, u.key_id, u.model
""",
)  # fmt: skip

# From the ledger, oldest first. `fare` is what was held, `billed` what was taken. Where it ran is the operator's business.
RECEIPTS = Statement(
    ("request_id", "at", "key_id", "key_name", "model", "endpoint", "fare", "billed", "from_pack", "verdict", "reason", "status",
     "stream", "queue_ms", "first_byte_ms", "total_ms", "prompt_tokens", "cached_tokens", "completion_tokens"),
    """
SELECT r.id, r.at, r.key_id, k.name, r.model, r.endpoint, r.fare, CASE r.verdict WHEN 'posted' THEN r.fare ELSE 0 END,
       r.from_pack, r.verdict, r.reason, r.status, r.stream, r.queue_ms, r.first_byte_ms, r.total_ms, r.prompt_tokens,
       r.cached_tokens, r.completion_tokens
  FROM requests r LEFT JOIN keys k ON k.id = r.key_id
 WHERE r.account_id = :account AND r.day BETWEEN :first AND :last
 ORDER BY r.at
""",
)  # fmt: skip


def statement_rows(
    connection: Connection, statement: Statement, account_id: UUID, first: date, last: date
) -> Iterator[tuple[Any, ...]]:
    """From a cursor that stays in the database: the first row is there before the last is found. Days are UTC, both included."""
    asked = {"account": account_id, "first": first, "last": last}
    options = {"stream_results": True, "yield_per": ROWS_AT_ONCE}
    with connection.execute(text(statement.query), asked, execution_options=options) as rows:
        for row in rows:
            yield tuple(row)
