"""Stripe's events as they come: who sent them is proved, each is stored once, and what it is about is found by ids alone."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from billing.stripe_objects import Event, links_of, time

# Of the events that are taken; Stripe signs each try anew.
TOLERANCE_SECONDS = 300
# Everything that a subscription, a pack or a refund goes through; nothing else is asked for or kept. Stripe lists 20 at once.
TYPES = (
    "charge.refunded",
    "checkout.session.async_payment_failed",
    "checkout.session.async_payment_succeeded",
    "checkout.session.completed",
    "customer.deleted",
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.pending_update_applied",
    "customer.subscription.pending_update_expired",
    "customer.subscription.resumed",
    "customer.subscription.updated",
    "invoice.overdue",
    "invoice.paid",
    "invoice.payment_action_required",
    "invoice.payment_failed",
    "invoice.voided",
    "subscription_schedule.canceled",
    "subscription_schedule.released",
    "subscription_schedule.updated",
)

Kind = Literal["subscription", "pack", "refund", "customer"]


class SignatureWrong(Exception):
    """Nobody who has a secret of this endpoint signed this body just now."""


class EventUnreadable(Exception):
    """The body is no event of Stripe's."""


class EventForeign(Exception):
    """An event of another account of Stripe's, or of test mode where money is real, or the reverse."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What has to be looked at again: a subscription, a session that sold a pack, a payment given back, a customer."""

    kind: Kind
    id: str


def verify(body: bytes, signature: str | None, secrets: Sequence[str], now_seconds: int) -> None:
    """`signature` is the header `Stripe-Signature`: `t=<seconds>,v1=<hex>[,v1=<hex>...]` (https://docs.stripe.com/webhooks).

    Ours instead of the SDK's check: by our clock, late and early alike, and without the SDK in every gateway's memory. A test
    holds the two against each other. Raises: SignatureWrong.
    """
    if not secrets or not all(secret.strip() for secret in secrets):
        raise SignatureWrong("There is no secret: nobody can have signed with it.")
    at, given = _parts(signature or "")
    if at is None or not given:
        raise SignatureWrong("There is no signature.")
    if abs(now_seconds - at) > TOLERANCE_SECONDS:
        raise SignatureWrong(f"The signature is of more than {TOLERANCE_SECONDS} seconds before or after now.")
    signed = b"%d." % at + body
    wanted = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    # Each with each, without leaving off at a hit: how long it takes says nothing.
    hits = [hmac.compare_digest(one.encode(), other.encode()) for one in wanted for other in given]
    if not any(hits):
        raise SignatureWrong("The signature is not that of this body.")


def read_event(body: bytes, *, is_live: bool) -> Event:
    """Raises: EventUnreadable, EventForeign."""
    try:
        told = json.loads(body)
        if told["object"] != "event":
            raise EventUnreadable(f"This is a {str(told['object'])[:40]}, not an event with its object in it.")
        found = Event(
            str(told["id"]),
            str(told["type"]),
            time(told["created"]),
            told.get("api_version"),
            bool(told["livemode"]),
            links_of(told["data"]["object"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise EventUnreadable("This is no event of Stripe's.") from error
    if told.get("account"):
        raise EventForeign("This event is of a connected account; its endpoint must listen to our own account alone.")
    if found.is_live != is_live:
        raise EventForeign(f"This event is of {_mode(found.is_live)} mode, and our key of {_mode(is_live)} mode.")
    return found


def subject_of(links: Mapping[str, Any]) -> Subject | None:
    """None: it happened to nothing of ours that could have changed."""
    kind, which = links.get("object"), links.get("id")
    if kind == "subscription":
        return _subject("subscription", which)
    if kind in ("invoice", "subscription_schedule"):
        return _subject("subscription", links.get("subscription") or links.get("released_subscription"))
    if kind == "checkout.session":
        if links.get("mode") == "payment":
            return _subject("pack", which)
        return _subject("subscription", links.get("subscription"))
    if kind == "customer":
        return _subject("customer", which)
    if kind in ("charge", "refund"):
        return _subject("refund", links.get("payment_intent"))
    return None


def _subject(kind: Kind, which: Any) -> Subject | None:
    return Subject(kind, which) if isinstance(which, str) and which else None


def _parts(header: str) -> tuple[int | None, list[str]]:
    at, given = None, []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t" and value.isascii() and value.isdecimal() and len(value) <= 12:
            at = int(value)
        elif name == "v1":
            given.append(value)
    return at, given


def _mode(is_live: bool) -> str:  # the word for it
    return "live" if is_live else "test"
