"""Which plan each account has at an instant."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from billing.entitlements import Term
from billing.facts import ALL, SOME, at_ms, term_from_row


def plans_at(
    connection: Connection, now: datetime, grace_days: int, accounts: Collection[UUID] | None = None
) -> dict[UUID, Term]:
    """What each of these accounts has, or each of all."""
    query = ALL if accounts is None else SOME
    rows = connection.exec_driver_sql(query, None if accounts is None else {"ids": list(accounts)})
    return {row["id"]: term_from_row(row, at_ms(now), grace_days) for row in map(dict, rows.mappings())}
