"""What Stripe says, as values of our own: only here is known how its objects are nested."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

# What we write on Stripe's objects, so that they say whose and what they are.
ACCOUNT, PLAN, VERSION, KIND, FARES = "faregate_account", "faregate_plan", "faregate_version", "faregate_kind", "faregate_fares"
PACK = "pack"


@dataclass(frozen=True, slots=True)
class Account:
    id: str
    name: str | None
    country: str | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class Product:
    id: str
    name: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Sold:
    """The version of a plan that a price sells. It stands in the price's metadata; its lookup key may move on to another."""

    code: str
    version: int


@dataclass(frozen=True, slots=True)
class Price:
    """A month's price. `lookup_key` is None on one that lost it to another; `sells` None: none of ours."""

    id: str
    lookup_key: str | None
    product: str
    amount_cents: int
    currency: str
    is_active: bool
    sells: Sold | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """What a schedule changes the subscription to, and when."""

    price_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Subscription:
    """`account_id` is what we wrote on it when it was begun; who is billed is said by `customer`."""

    id: str
    customer: str
    account_id: UUID | None
    status: str
    item: str
    price: Price
    quantity: int
    collection_method: str
    created: datetime
    period_start: datetime
    period_end: datetime
    cancel_at_period_end: bool
    cancel_at: datetime | None
    trial_end: datetime | None
    ended_at: datetime | None
    is_paused: bool
    latest_invoice: str | None
    schedule: str | None
    pending: Pending | None


@dataclass(frozen=True, slots=True)
class Session:
    """A hosted page of Checkout. `url` is None once it is over."""

    id: str
    url: str | None
    mode: str
    status: str
    is_paid: bool
    customer: str | None
    subscription: str | None
    payment_intent: str | None
    amount_cents: int
    currency: str
    created: datetime
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Invoice:
    id: str
    number: str | None
    status: str
    reason: str | None
    total_cents: int
    paid_cents: int
    currency: str
    created: datetime
    finalized_at: datetime | None
    due_at: datetime | None
    subscription: str | None
    url: str | None
    payment_intents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at Stripe. `links` is what it happened to: ids alone, so that no name or address is kept."""

    id: str
    type: str
    created: datetime
    api_version: str | None
    is_live: bool
    links: Mapping[str, Any]


# Where one of Stripe's objects names others, or says which of them matter.
_LINKS = ("id", "object", "customer", "subscription", "released_subscription", "payment_intent", "charge", "mode", "parent")


def links_of(thing: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: thing[name] for name in _LINKS if isinstance(thing.get(name), str)}
    details = (thing.get("parent") or {}).get("subscription_details") or {}
    if isinstance(details.get("subscription"), str):
        found["subscription"] = details["subscription"]
    return found


def is_live_key(key: str) -> bool:
    """Whether money moves with it."""
    return key.startswith(("sk_live_", "rk_live_"))


def product(found: Any) -> Product:
    return Product(found.id, found.name, found.active)


def price(found: Any) -> Price:
    of = id_of(found.product) or ""
    return Price(found.id, found.lookup_key, of, found.unit_amount or 0, found.currency, found.active, _sold(found.metadata))


def subscription(found: Any) -> Subscription:
    """With `schedule` expanded. Of several items the one that sells a plan of ours."""
    items = found["items"].data
    item = next((one for one in items if _sold(one.price.metadata) is not None), items[0])
    return Subscription(
        id=found.id,
        customer=id_of(found.customer) or "",
        account_id=account_of(found.metadata),
        status=found.status,
        item=item.id,
        price=price(item.price),
        quantity=item.quantity or 1,
        collection_method=found.collection_method,
        created=time(found.created),
        period_start=time(item.current_period_start),
        period_end=time(item.current_period_end),
        cancel_at_period_end=found.cancel_at_period_end,
        cancel_at=_time(found.cancel_at),
        trial_end=_time(found.trial_end),
        ended_at=_time(found.ended_at),
        is_paused=found.pause_collection is not None,
        latest_invoice=id_of(found.latest_invoice),
        schedule=id_of(found.schedule),
        pending=_pending(found.schedule, item.price.id),
    )


def session(found: Any) -> Session:
    return Session(
        id=found.id,
        url=found.url,
        mode=found.mode,
        status=found.status or "",
        is_paid=found.payment_status in ("paid", "no_payment_required"),
        customer=id_of(found.customer),
        subscription=id_of(found.subscription),
        payment_intent=id_of(found.payment_intent),
        amount_cents=found.amount_total or 0,
        currency=found.currency or "",
        created=time(found.created),
        metadata=plain(found.metadata),
    )


def invoice(found: Any) -> Invoice:
    """With `payments` expanded."""
    details = found.parent.subscription_details if found.parent else None
    payments = found.payments.data if "payments" in found and found.payments else []
    intents = (id_of(one.payment.payment_intent) for one in payments if one.status == "paid" and "payment_intent" in one.payment)
    return Invoice(
        id=found.id,
        number=found.number,
        status=found.status or "",
        reason=found.billing_reason,
        total_cents=found.total,
        paid_cents=found.amount_paid,
        currency=found.currency,
        created=time(found.created),
        finalized_at=_time(found.status_transitions.finalized_at),
        due_at=_time(found.due_date),
        subscription=id_of(details.subscription) if details else None,
        url=found.hosted_invoice_url,
        payment_intents=tuple(one for one in intents if one is not None),
    )


def event(found: Any) -> Event:
    links = links_of(found.data.object.to_dict())
    return Event(found.id, found.type, time(found.created), found.api_version, found.livemode, links)


def account_of(metadata: Any) -> UUID | None:
    """Whose it is, as we wrote on it."""
    try:
        return UUID(plain(metadata)[ACCOUNT])
    except (KeyError, ValueError):
        return None


def id_of(found: Any) -> str | None:
    """Of an object, or of its id where it was not expanded."""
    if found is None or isinstance(found, str):
        return found
    which: str = found.id
    return which


def time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def plain(metadata: Any) -> dict[str, str]:
    return {} if metadata is None else dict(metadata.to_dict())


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else time(seconds)


def _sold(metadata: Any) -> Sold | None:
    try:
        written = plain(metadata)
        return Sold(written[PLAN], int(written[VERSION]))
    except (KeyError, ValueError):
        return None


def _pending(schedule: Any, price_now: str) -> Pending | None:
    """The first phase to come that has another price."""
    if schedule is None or isinstance(schedule, str) or schedule.status != "active" or schedule.current_phase is None:
        return None
    for phase in schedule.phases:
        if phase.start_date >= schedule.current_phase.end_date:
            then = id_of(phase["items"][0].price)
            if then is not None and then != price_now:
                return Pending(then, time(phase.start_date))
    return None
