"""Packs: fares beyond the day's quota, paid once; each purchase and each refund counts once, by its payment."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from billing.changes import account_changed
from billing.tables import packs

ACTOR = "stripe"


def bought(
    connection: Connection, account_id: UUID, *, fares: int, amount_cents: int, currency: str, payment_intent: str, at: datetime
) -> bool:
    """Whether it is new. Raises: AccountUnknown."""
    values = {
        "id": uuid7(), "account_id": account_id, "fares": fares, "amount_cents": amount_cents, "currency": currency,
        "payment_intent": payment_intent, "bought_at": at,
    }  # fmt: skip
    made = insert(packs).values(values).on_conflict_do_nothing(index_elements=["payment_intent"])
    if not connection.execute(made).rowcount:
        return False
    details = {"fares": fares, "amount_cents": amount_cents, "currency": currency, "payment": payment_intent}
    account_changed(connection, account_id, "pack.bought", actor=ACTOR, details=details)
    return True


def refunded(connection: Connection, payment_intent: str, at: datetime) -> bool:
    """Whether there was such a pack, and it was not given back yet."""
    mine = packs.c
    gone = update(packs).where(mine.payment_intent == payment_intent, mine.refunded_at.is_(None)).values(refunded_at=at)
    row = connection.execute(gone.returning(mine.account_id, mine.fares, mine.amount_cents, mine.currency)).first()
    if row is None:
        return False
    details = {"fares": row.fares, "amount_cents": row.amount_cents, "currency": row.currency, "payment": payment_intent}
    account_changed(connection, row.account_id, "pack.refunded", actor=ACTOR, details=details)
    return True


def price_paid(connection: Connection, payment_intent: str) -> int | None:
    """In cents; None: that payment was for no pack, or its pack has not come yet."""
    found: int | None = connection.scalar(select(packs.c.amount_cents).where(packs.c.payment_intent == payment_intent))
    return found
