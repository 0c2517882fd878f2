"""The ledger as PostgreSQL has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

from tests.support.gateway import Customer


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    verdict: str
    reason: str
    fare: int
    status: int | None
    from_pack: bool


def rows(database_url: str, customer: Customer | None = None) -> Sequence[Row]:
    """Every row, or one customer's."""
    with psycopg.connect(database_url) as connection, connection.cursor(row_factory=class_row(Row)) as cursor:
        return cursor.execute(
            "SELECT id::text, verdict, reason, fare, status, from_pack FROM requests"
            " WHERE %(account)s::uuid IS NULL OR account_id = %(account)s",
            {"account": customer.account_id if customer else None},
        ).fetchall()


def count(database_url: str, query: str) -> Any:
    """The first column of the first row."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
