"""What became of what was sold: the worker's half. Events are applied, doubles ended, and what was missed is looked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import assert_never
from uuid import UUID

from sqlalchemy import Connection, delete, exists, select
from sqlalchemy.exc import OperationalError

from billing import inbox, packs
from billing.changes import audit
from billing.inbox import Waiting
from billing.shop import Shop
from billing.stripe import StripeLacks, StripeUnavailable
from billing.stripe_objects import ACCOUNT, FARES, KIND, PACK, Session, Subscription
from billing.subscriptions import ACTOR, LIVE, accounts_with_several, differs, refresh
from billing.tables import accounts, customers, subscriptions
from billing.webhooks import TYPES, Subject, subject_of

# How long Stripe knows its events; and what of them may be listed later than they were made.
KNOWN_DAYS = 30
OVERLAP = timedelta(hours=1)
_PAGE = 100


class PackUnclear(Exception):
    """A payment that is said to be for a pack does not say whose, or of how many fares."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found that had not come by itself."""

    events: int
    subscriptions: int
    lacking: tuple[str, ...] = ()  # of the record, and unknown to Stripe: another account's, or test data that was cleared


def apply_due(shop: Shop) -> int:
    """Every event that is due, once for each thing that they are about; returns how many events were looked at.

    Raises: OperationalError when the record can't be used; what Stripe could not do is written down and tried again.
    """
    with shop.engine.begin() as connection:
        waiting = inbox.due(connection, shop.now())
    for subject, events in _by_subject(waiting):
        _try(shop, subject, events)
    return len(waiting)


def end_doubles(shop: Shop) -> int:
    """Of two subscriptions that an account began at once, the later one ends and is given back; returns how many were.

    Those that were not begun here are left alone: whoever made a second one at Stripe by hand wanted it.
    """
    with shop.engine.begin() as connection:
        several = accounts_with_several(connection)
    ended = 0
    for account_id, ids in several.items():
        fetched = [refresh(shop, one).subscription for one in ids]
        living = sorted((one for one in fetched if one.status in LIVE), key=lambda one: (one.created, one.id))
        for double in living[1:]:
            if double.account_id == account_id:
                _end(shop, account_id, double)
                ended += 1
    return ended


def sweep(shop: Shop, since: datetime | None) -> Swept:
    """Asks Stripe what happened since then, and how its subscriptions stand; what had not come is stored and applied.

    `since` None: for as long as Stripe knows. Raises: StripeUnavailable, StripeRefused.
    """
    now = shop.now()
    begin = max(since - OVERLAP, now - timedelta(days=KNOWN_DAYS)) if since else now - timedelta(days=KNOWN_DAYS)
    missed, events = 0, shop.stripe.events(begin, TYPES)
    while page := list(islice(events, _PAGE)):
        with shop.engine.begin() as connection:
            missed += sum(inbox.store(connection, event, now) for event in page)
    stale, lacking = _stale(shop), []
    for subscription_id in stale:
        try:
            refresh(shop, subscription_id)
        except StripeLacks:  # a wrong key must not end what is paid for: a person has to look
            lacking.append(subscription_id)
    with shop.engine.begin() as connection:
        inbox.forget(connection, now)
    return Swept(missed, len(stale) - len(lacking), tuple(lacking))


def _by_subject(waiting: Sequence[Waiting]) -> list[tuple[Subject | None, list[Waiting]]]:
    """One fetch serves all events of a thing that came before it."""

    def key(one: Waiting) -> tuple[str, str]:
        subject = subject_of(one.payload)
        return ("", "") if subject is None else (subject.kind, subject.id)

    grouped = groupby(sorted(waiting, key=key), key=key)
    return [(subject_of(several[0].payload), several) for _, several in ((one, list(group)) for one, group in grouped)]


def _try(shop: Shop, subject: Subject | None, events: Sequence[Waiting]) -> None:
    try:
        _apply(shop, subject, [one.id for one in events])
    except StripeUnavailable as outage:
        _note(shop, events, f"Stripe can't be asked: {outage}", is_outage=True)
    except OperationalError:
        raise
    except Exception as problem:  # an event that we can't read must not stop those behind it
        _note(shop, events, f"{type(problem).__name__}: {problem}")


def _note(shop: Shop, events: Sequence[Waiting], problem: str, *, is_outage: bool = False) -> None:
    with shop.engine.begin() as connection:
        inbox.failed(connection, events, problem, shop.now(), is_outage=is_outage)


def _apply(shop: Shop, subject: Subject | None, ids: Sequence[str]) -> None:
    def done(connection: Connection) -> None:
        inbox.applied(connection, ids, shop.now())

    if subject is None:
        with shop.engine.begin() as connection:
            done(connection)
        return
    match subject.kind:
        case "subscription":
            refresh(shop, subject.id, also=done)
        case "pack":
            _pack(shop, subject.id, done)
        case "refund":
            _refund(shop, subject.id, done)
        case "customer":
            gone = not shop.stripe.has_customer(subject.id)
            with shop.engine.begin() as connection:
                if gone:  # the next purchase makes another; subscriptions end with events of their own
                    connection.execute(delete(customers).where(customers.c.stripe_id == subject.id))
                done(connection)
        case _:
            assert_never(subject.kind)


def _pack(shop: Shop, session_id: str, done: Callable[[Connection], None]) -> None:
    """The pack first, then what was given back of it: a refund may be told of before its purchase, and finds nothing then."""
    session = shop.stripe.session(session_id)
    with shop.engine.begin() as connection:
        _pack_bought(connection, session)
    if session.payment_intent is not None:
        _refund(shop, session.payment_intent, done)
        return
    with shop.engine.begin() as connection:
        done(connection)


def _refund(shop: Shop, payment_intent: str, done: Callable[[Connection], None]) -> None:
    """A pack goes when all of its price is given back; a part is kindness."""
    given_back = shop.stripe.refunded_cents(payment_intent)
    with shop.engine.begin() as connection:
        paid = packs.price_paid(connection, payment_intent)
        if paid is not None and 0 < paid <= given_back:
            packs.refunded(connection, payment_intent, shop.now())
        done(connection)


def _pack_bought(connection: Connection, session: Session) -> None:
    """A session that is not paid yet, or is of no pack, brings nothing. Raises: PackUnclear."""
    if session.metadata.get(KIND) != PACK or not session.is_paid or session.status != "complete":
        return
    try:
        account_id, fares = UUID(session.metadata[ACCOUNT]), int(session.metadata[FARES])
    except (KeyError, ValueError) as error:
        raise PackUnclear(f"The session {session.id} does not say whose pack it was, or of how many fares.") from error
    if not connection.scalar(select(exists().where(accounts.c.id == account_id))):
        raise PackUnclear(f"The session {session.id} is of an account that is not here: {account_id}.")
    packs.bought(
        connection,
        account_id,
        fares=fares,
        amount_cents=session.amount_cents,
        currency=session.currency,
        payment_intent=session.payment_intent or session.id,  # a coupon of 100% leaves nothing to pay
        at=session.created,
    )


def _end(shop: Shop, account_id: UUID, double: Subscription) -> None:
    """Written down, given back, ended: cut off anywhere, it is still there to be found again, and is given back once."""
    first = [one for one in shop.stripe.invoices_of(double.id) if one.reason == "subscription_create"]
    intents = [intent for invoice in first for intent in invoice.payment_intents]
    details = {"why": "the account has one already", "refunds": intents}
    with shop.engine.begin() as connection:
        audit(connection, "subscription.end_double", actor=ACTOR, account_id=account_id, subject=double.id, details=details)
    for intent in intents:
        if not shop.stripe.refunded_cents(intent):
            shop.stripe.refund(intent, cents=None, why="begun twice")
    shop.stripe.cancel(double.id)
    refresh(shop, double.id)


def _stale(shop: Shop) -> list[str]:
    """Of the listing and the record, those of which one says something else than the other, or nothing; others' left out."""
    listed = {one.id: one for one in shop.stripe.subscriptions()}
    with shop.engine.begin() as connection:
        mine = subscriptions.c
        rows = connection.execute(select(subscriptions).where(mine.ended_at.is_(None) | mine.id.in_(listed))).mappings().all()
        buyers = {one.customer for one in listed.values()}
        ours = set(connection.scalars(select(customers.c.stripe_id).where(customers.c.stripe_id.in_(buyers))))
    known = {row["id"] for row in rows}
    stale = [row["id"] for row in rows if row["id"] not in listed or differs(row, listed[row["id"]])]
    return stale + [one.id for one in listed.values() if one.id not in known and (one.account_id or one.customer in ours)]
