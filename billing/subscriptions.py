"""Subscriptions as Stripe has them: fetched anew at each word of them, and written here where they differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from billing.changes import account_changed
from billing.shop import Shop
from billing.stripe_objects import Sold, Subscription
from billing.tables import accounts, customers, plans, subscriptions

# Stripe's words for one that is there, whether it is paid or not; `incomplete` waits for its first payment.
LIVE = ("trialing", "active", "past_due", "unpaid", "paused")
ENDED = ("canceled", "incomplete_expired")
ACTOR = "stripe"
# Of a change, what is no news for anybody: when it was looked at, and which bill is the latest.
_NO_NEWS = ("fetched_at", "latest_invoice")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A subscription, with what its schedule sells next and since when a bill of it is unpaid."""

    subscription: Subscription
    pending: Sold | None = None
    past_due_since: datetime | None = None


def refresh(shop: Shop, subscription_id: str, *, also: Callable[[Connection], None] = lambda _: None) -> Fetched:
    """Stripe's word of it, in the record. `also` is done in the same transaction.

    What is written was asked for after the last writing had been committed: of two who fetch at once, the later one writes or
    fetches again, so that no older word is written over a newer. Raises: StripeUnavailable, StripeRefused.
    """
    while True:
        with shop.engine.begin() as connection:
            seen = _fetched_at(connection, subscription_id)
        fetched = fetch(shop, subscription_id)
        with shop.engine.begin() as connection:
            if _fetched_at(connection, subscription_id, is_locked=True) == seen and apply(connection, fetched, shop.now()):
                also(connection)
                return fetched


def fetch(shop: Shop, subscription_id: str) -> Fetched:
    """Asked of Stripe alone, so that whoever asks, whenever, finds the same. Raises: StripeUnavailable, StripeRefused."""
    found = shop.stripe.subscription(subscription_id)
    pending = shop.stripe.price(found.pending.price_id).sells if found.pending else None
    since = None
    if found.status == "past_due":
        unpaid = shop.stripe.unpaid_invoices(found.id)
        times = [one.due_at or one.finalized_at or one.created for one in unpaid]
        since = min(times, default=found.period_start)
    return Fetched(found, pending, since)


def apply(connection: Connection, fetched: Fetched, now: datetime) -> bool:
    """Writes what Stripe says, and makes the account's change known if there is one.

    False: somebody else wrote it first. A subscription of no account of ours is none of our business.
    """
    found = fetched.subscription
    account_id = _owner(connection, found)
    if account_id is None:
        return True
    before = connection.execute(select(subscriptions).where(subscriptions.c.id == found.id)).mappings().first()
    values = _row(connection, fetched, account_id, now)
    if before is None:
        if not connection.execute(insert(subscriptions).values(values).on_conflict_do_nothing(index_elements=["id"])).rowcount:
            return False
    else:
        connection.execute(update(subscriptions).where(subscriptions.c.id == found.id).values(values))
    changes = _changes(before, values)
    if changes:
        details = {"subscription": found.id, **changes}
        account_changed(connection, account_id, "subscription.changed", actor=ACTOR, details=details)
    return True


def live_subscription(connection: Connection, account_id: UUID) -> RowMapping | None:
    """The one that the account has."""
    mine = subscriptions.c
    query = select(subscriptions).where(mine.account_id == account_id, mine.status.in_(LIVE)).order_by(mine.current_period_start)
    return connection.execute(query.limit(1)).mappings().first()


def subscriptions_of(connection: Connection, account_id: UUID) -> list[RowMapping]:
    """Every one there ever was, newest first."""
    query = select(subscriptions).where(subscriptions.c.account_id == account_id)
    return list(connection.execute(query.order_by(subscriptions.c.current_period_end.desc())).mappings())


def accounts_with_several(connection: Connection) -> dict[UUID, list[str]]:
    """Two purchases at once may leave an account with two; Stripe knows no rule against it."""
    mine = subscriptions.c
    query = select(mine.account_id, func.array_agg(mine.id)).where(mine.ended_at.is_(None), mine.status.in_(LIVE))
    found = connection.execute(query.group_by(mine.account_id).having(func.count() > 1).order_by(func.min(mine.id)))
    return {account_id: sorted(ids) for account_id, ids in found}


def differs(row: RowMapping, listed: Subscription) -> bool:
    """Whether a listing of Stripe's says something else than the record."""
    return bool(
        (row["status"], row["price_id"], row["current_period_end"], row["quantity"])
        != (listed.status, listed.price.id, listed.period_end, listed.quantity)
        or (row["cancel_at_period_end"], row["cancel_at"], row["paused"])
        != (listed.cancel_at_period_end, listed.cancel_at, listed.is_paused)
        or row["pending_at"] != (listed.pending.at if listed.pending else None)
    )


def _fetched_at(connection: Connection, subscription_id: str, *, is_locked: bool = False) -> datetime | None:
    query = select(subscriptions.c.fetched_at).where(subscriptions.c.id == subscription_id)
    found: datetime | None = connection.scalar(query.with_for_update() if is_locked else query)
    return found


def _owner(connection: Connection, found: Subscription) -> UUID | None:
    """By the customer who is billed; one that we lost, or that was made by hand, by what stands on the subscription."""
    known: UUID | None = connection.scalar(select(customers.c.account_id).where(customers.c.stripe_id == found.customer))
    if known is not None or found.account_id is None:
        return known
    if not connection.scalar(select(exists().where(accounts.c.id == found.account_id))):
        return None
    if found.ended_at is None:  # who had one that is over may be deleted at Stripe
        row = {"account_id": found.account_id, "stripe_id": found.customer}
        connection.execute(insert(customers).values(row).on_conflict_do_nothing())
    return found.account_id


def _row(connection: Connection, fetched: Fetched, account_id: UUID, now: datetime) -> dict[str, Any]:
    found = fetched.subscription
    sold, pending = _known(connection, found.price.sells), _known(connection, fetched.pending)
    return {
        "id": found.id,
        "account_id": account_id,
        "status": found.status,
        "plan_code": sold and sold.code,
        "plan_version": sold and sold.version,
        "price_id": found.price.id,
        "quantity": found.quantity,
        "currency": found.price.currency,
        "amount_cents": found.price.amount_cents * found.quantity,
        "collection_method": found.collection_method,
        "current_period_start": found.period_start,
        "current_period_end": found.period_end,
        "cancel_at_period_end": found.cancel_at_period_end,
        "cancel_at": found.cancel_at,
        "trial_end": found.trial_end,
        "past_due_since": fetched.past_due_since,
        "paused": found.is_paused,
        "latest_invoice": found.latest_invoice,
        "pending_plan_code": pending and pending.code,
        "pending_plan_version": pending and pending.version,
        "pending_at": found.pending.at if found.pending else None,
        "fetched_at": func.clock_timestamp(),
        "ended_at": (found.ended_at or now) if found.status in ENDED else None,
    }


def _known(connection: Connection, sold: Sold | None) -> Sold | None:
    """A price may name a plan that this database never had; then it is paid for nothing, and reconciliation says so."""
    if sold is None:
        return None
    is_there = exists().where(plans.c.code == sold.code, plans.c.version == sold.version)
    return sold if connection.scalar(select(is_there)) else None


def _changes(before: RowMapping | None, after: Mapping[str, Any]) -> dict[str, Any]:
    """By column, what it was and what it is; in words, as they go into an audit entry."""
    old: dict[str, Any] = {} if before is None else {**before}
    names = [name for name in after if name not in (*_NO_NEWS, "id", "account_id")]
    return {name: [_told(old.get(name)), _told(after[name])] for name in names if old.get(name) != after[name]}


def _told(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
