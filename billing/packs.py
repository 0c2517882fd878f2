"""Packs: fares beyond the day's quota that never expire; each purchase and each refund counts once, by its payment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from uuid_utils.compat import uuid7

from billing.changes import account_changed
from billing.constraints import named_constraints
from billing.tables import accounts, packs, usage_daily

STRIPE = "stripe"


class PackWrong(Exception):
    """The numbers can't be those of a pack, or of a cap."""


@dataclass(frozen=True, slots=True)
class Pack:
    """`used` is as the ledger knows it; `taken_back` was not used when it was given back (None: it was not).

    `payment_intent` None: an admin gave it.
    """

    id: UUID
    fares: int
    used: int
    taken_back: int | None
    amount_cents: int
    currency: str
    payment_intent: str | None
    bought_at: datetime
    refunded_at: datetime | None

    @property
    def left(self) -> int:
        return self.fares - (self.taken_back or 0) - self.used


def spread(sizes: Iterable[int], used: int) -> Iterator[int]:
    """What is used of each pack, the oldest first: so many fares of it as there are until `used` is reached. Pure."""
    for size in sizes:
        taken = min(size, used)
        used -= taken
        yield taken


def packs_of(connection: Connection, account_id: UUID) -> list[Pack]:
    """Oldest first."""
    query = select(packs).where(packs.c.account_id == account_id).order_by(packs.c.bought_at, packs.c.id)
    return _with_use(connection.execute(query).all(), used_of(connection, account_id))


def used_of(connection: Connection, account_id: UUID) -> int:
    """Fares of packs in the account's posted rows, ever."""
    mine = usage_daily.c
    query = select(func.coalesce(func.sum(mine.pack_fares), 0)).where(mine.account_id == account_id, mine.pack_fares > 0)
    return int(connection.scalar(query) or 0)


def bought(
    connection: Connection, account_id: UUID, *, fares: int, amount_cents: int, currency: str, payment_intent: str, at: datetime
) -> bool:
    """Whether it is new. Raises: AccountUnknown."""
    values = {
        "id": uuid7(), "account_id": account_id, "fares": fares, "amount_cents": amount_cents, "currency": currency,
        "payment_intent": payment_intent, "bought_at": at,
    }  # fmt: skip
    made = upsert(packs).values(values).on_conflict_do_nothing(index_elements=["payment_intent"])
    if not connection.execute(made).rowcount:
        return False
    details = {"fares": fares, "amount_cents": amount_cents, "currency": currency, "payment": payment_intent}
    account_changed(connection, account_id, "pack.bought", actor=STRIPE, details=details)
    return True


def given(connection: Connection, account_id: UUID, fares: int, *, currency: str, at: datetime, actor: str, why: str) -> None:
    """A pack that nobody pays for. Raises: PackWrong, AccountUnknown."""
    values = {
        "id": uuid7(), "account_id": account_id, "fares": fares, "amount_cents": 0, "currency": currency, "bought_at": at,
    }  # fmt: skip
    account_changed(connection, account_id, "pack.given", actor=actor, details={"fares": fares, "why": why})
    with named_constraints({"packs_fares_bounds": PackWrong("A pack has 1 to 10,000,000 requests.")}):
        connection.execute(insert(packs).values(values))


def refunded(connection: Connection, payment_intent: str, at: datetime) -> bool:
    """Whether there was such a pack, and it was not given back yet. What the ledger has used of it stays used; the rest goes."""
    mine = packs.c
    account_id = connection.scalar(select(mine.account_id).where(mine.payment_intent == payment_intent))
    if account_id is None:
        return False
    # Of two refunds at once, the second one looks at what the first has left.
    connection.execute(select(mine.id).where(mine.account_id == account_id).with_for_update())
    [pack] = [one for one in packs_of(connection, account_id) if one.payment_intent == payment_intent]
    if pack.refunded_at is not None:
        return False
    connection.execute(update(packs).where(mine.id == pack.id).values(refunded_at=at, taken_back=pack.left))
    details = {
        "fares": pack.fares, "taken_back": pack.left, "amount_cents": pack.amount_cents, "currency": pack.currency,
        "payment": payment_intent,
    }  # fmt: skip
    account_changed(connection, account_id, "pack.refunded", actor=STRIPE, details=details)
    return True


def price_paid(connection: Connection, payment_intent: str) -> int | None:
    """In cents; None: that payment was for no pack, or its pack has not come yet."""
    found: int | None = connection.scalar(select(packs.c.amount_cents).where(packs.c.payment_intent == payment_intent))
    return found


def set_cap(connection: Connection, account_id: UUID, fares_per_month: int | None, *, actor: str) -> None:
    """How many fares of packs the account may use in a month (UTC); None: all that it has. Raises: PackWrong, AccountUnknown."""
    details = {"fares_per_month": fares_per_month}
    account_changed(connection, account_id, "pack.set_cap", actor=actor, details=details)
    changed = update(accounts).where(accounts.c.id == account_id).values(pack_fares_per_month=fares_per_month)
    with named_constraints({"accounts_pack_cap_bounds": PackWrong("A cap is 0 to 1,000,000,000,000 requests a month.")}):
        connection.execute(changed)


def _with_use(rows: Sequence[Row[tuple[object, ...]]], used: int) -> list[Pack]:
    sizes = [row.fares - (row.taken_back or 0) for row in rows]
    return [
        Pack(
            id=row.id, fares=row.fares, used=taken, taken_back=row.taken_back, amount_cents=row.amount_cents,
            currency=row.currency, payment_intent=row.payment_intent, bought_at=row.bought_at, refunded_at=row.refunded_at,
        )
        for row, taken in zip(rows, spread(sizes, used), strict=True)
    ]  # fmt: skip
