"""Stripe: the one file that imports it, and the few things that are asked of it."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import stripe

from billing import stripe_objects as read
from billing.stripe_objects import Account, Event, Invoice, Price, Product, Session, Subscription, is_live_key

# What our code was written against; the SDK of a later release would otherwise move us along unasked.
API_VERSION = "2026-10-28.endive"
# Of one attempt; the SDK's own is 80 s. Its client tries once unless told otherwise; a retry keeps the idempotency key.
_TIMEOUT_SECONDS = 20
_RETRIES = 2
_PAGE = 100


class StripeUnavailable(Exception):
    """Stripe can't be reached or fails; whether it did what was asked is not known, and asking again is safe."""


class StripeRefused(Exception):
    """Stripe understood and said no, in the words of the message."""


class StripeLacks(StripeRefused):
    """What was asked for is not there."""


@dataclass(frozen=True, slots=True)
class Stripe:
    """Every call raises StripeUnavailable, StripeRefused or, where an id is given, StripeLacks.

    What creates carries an idempotency key made from our own ids, so that asking twice makes one thing.
    """

    client: stripe.StripeClient
    is_live: bool

    def account(self) -> Account:
        with _our_errors():
            found = self.client.v1.accounts.retrieve_current()
        dashboard = found.settings.dashboard if found.settings else None
        return Account(found.id, dashboard.display_name if dashboard else None, found.country, found.default_currency)

    # What is sold

    def products(self, ids: Sequence[str]) -> list[Product]:
        """Those of them that exist, archived ones too."""
        with _our_errors():
            found = [one for part in _parts(ids) for one in self.client.v1.products.list({"ids": part, "limit": _PAGE}).data]
        return [read.product(one) for one in found]

    def prices(self, product_id: str) -> list[Price]:
        """All monthly ones, archived ones too."""
        with _our_errors():
            pages = self.client.v1.prices.list({"product": product_id, "type": "recurring", "limit": _PAGE})
            return [read.price(one) for one in pages.auto_paging_iter()]

    def price(self, price_id: str) -> Price:
        with _our_errors():
            return read.price(self.client.v1.prices.retrieve(price_id))

    def create_product(self, product_id: str, *, name: str, metadata: Mapping[str, str]) -> Product:
        asked: Any = {"id": product_id, "name": name, "metadata": dict(metadata)}
        with _our_errors():
            return read.product(self.client.v1.products.create(asked, _once("product", product_id, asked)))

    def update_product(self, product_id: str, *, name: str, is_active: bool) -> Product:
        with _our_errors():
            return read.product(self.client.v1.products.update(product_id, {"name": name, "active": is_active}))

    def create_price(
        self,
        lookup_key: str | None,
        *,
        product_id: str,
        amount_cents: int,
        currency: str,
        metadata: Mapping[str, str],
        replaces: str | None = None,
    ) -> Price:
        """The lookup key moves here from the price that it replaces; that one goes on for whoever pays it.

        What is replaced is a part of the wish: a price that comes back after another must not get the answer of its first time.
        """
        asked: Any = {
            "product": product_id, "currency": currency, "unit_amount": amount_cents, "recurring": {"interval": "month"},
            "metadata": dict(metadata), **({"lookup_key": lookup_key, "transfer_lookup_key": True} if lookup_key else {}),
        }  # fmt: skip
        once = _once("price", lookup_key or product_id, {**asked, "replaces": replaces})
        with _our_errors():
            return read.price(self.client.v1.prices.create(asked, once))

    def set_price_active(self, price_id: str, *, is_active: bool) -> Price:
        """An archived price begins no subscription any more; those that have it keep it."""
        with _our_errors():
            return read.price(self.client.v1.prices.update(price_id, {"active": is_active}))

    def promotion(self, code: str) -> str | None:
        """The id of the promotion code that customers type so."""
        with _our_errors():
            found = self.client.v1.promotion_codes.list({"code": code, "active": True, "limit": 1}).data
        return found[0].id if found else None

    # Who buys, and where

    def create_customer(self, account_id: str, *, name: str, email: str, after: str = "") -> str:
        """Its id. `after` is the one that it replaces."""
        asked: Any = {"name": name, "email": email, "metadata": {read.ACCOUNT: account_id}}
        with _our_errors():
            return self.client.v1.customers.create(asked, _once("customer", account_id, {**asked, "after": after})).id

    def has_customer(self, customer: str) -> bool:
        """One that was deleted is shown, and is none any more."""
        with _our_errors():
            found = self.client.v1.customers.retrieve(customer)
        return not getattr(found, "deleted", False)

    def sessions(self, customer: str) -> list[Session]:
        """The latest of Checkout, newest first."""
        with _our_errors():
            return [read.session(one) for one in self.client.v1.checkout.sessions.list({"customer": customer, "limit": 10}).data]

    def session(self, session_id: str) -> Session:
        with _our_errors():
            return read.session(self.client.v1.checkout.sessions.retrieve(session_id))

    def open_session(self, asked: Any, *, after: str) -> Session:
        """`after` is the session before it: without another in between, the same wish has the same page."""
        once = _once("session", asked["customer"], {**asked, "after": after})
        with _our_errors():
            return read.session(self.client.v1.checkout.sessions.create(asked, once))

    def expire_session(self, session_id: str) -> Session:
        with _our_errors():
            return read.session(self.client.v1.checkout.sessions.expire(session_id))

    def portal(self, customer: str, *, features: Any, return_url: str) -> str:
        """The address of a page of the customer's own, with what the features open there."""
        told = _digest(features)
        with _our_errors():
            known = self.client.v1.billing_portal.configurations.list({"active": True, "limit": _PAGE}).data
            chosen = next((one.id for one in known if read.plain(one.metadata).get("faregate_features") == told), None)
            if chosen is None:
                asked: Any = {"features": features, "metadata": {"faregate_features": told}}
                chosen = self.client.v1.billing_portal.configurations.create(asked, _once("portal", told, asked)).id
            given: Any = {"customer": customer, "configuration": chosen, "return_url": return_url}
            return self.client.v1.billing_portal.sessions.create(given).url

    # Subscriptions

    def subscription(self, subscription_id: str) -> Subscription:
        with _our_errors():
            return read.subscription(self.client.v1.subscriptions.retrieve(subscription_id, {"expand": ["schedule"]}))

    def subscriptions(self, customer: str | None = None) -> list[Subscription]:
        """Those that have not ended, of a customer or of all."""
        asked: Any = {"limit": _PAGE, "expand": ["data.schedule"], **({"customer": customer} if customer else {})}
        with _our_errors():
            return [read.subscription(one) for one in self.client.v1.subscriptions.list(asked).auto_paging_iter()]

    def create_subscription(self, asked: Any, *, after: str) -> str:
        """Its id. `after` is the latest one that the customer had."""
        once = _once("subscription", asked["customer"], {**asked, "after": after})
        with _our_errors():
            return self.client.v1.subscriptions.create(asked, once).id

    def move(self, found: Subscription, price_id: str) -> None:
        """To another price at once, prorated and billed now; it waits until that is paid, a day at most."""
        asked: Any = {
            "items": [{"id": found.item, "price": price_id}], "proration_behavior": "always_invoice",
            "payment_behavior": "pending_if_incomplete",
        }  # fmt: skip
        once = _once("move", found.id, {**asked, "after": found.latest_invoice})
        with _our_errors():
            self.client.v1.subscriptions.update(found.id, asked, once)

    def move_later(self, found: Subscription, price_id: str) -> None:
        """To another price when the period is over. A schedule that was begun and not finished is finished."""
        schedules = self.client.v1.subscription_schedules
        with _our_errors():
            # No key of ours: a subscription has one schedule at a time, and the next must not get the answer of the last.
            begun = schedules.retrieve(found.schedule) if found.schedule else schedules.create({"from_subscription": found.id})
            begins = begun.current_phase.start_date if begun.current_phase else int(found.period_start.timestamp())
            items = [{"price": found.price.id, "quantity": found.quantity}]
            phases = [
                {"items": items, "start_date": begins, "end_date": int(found.period_end.timestamp())},
                {"items": [{"price": price_id, "quantity": found.quantity}]},
            ]
            asked: Any = {"phases": phases, "end_behavior": "release"}
            schedules.update(begun.id, asked)

    def release(self, schedule_id: str) -> None:
        """What waited happens no more; the subscription stays as it is."""
        with _our_errors():
            self.client.v1.subscription_schedules.release(schedule_id)

    def cancel_later(self, subscription_id: str, *, is_cancelled: bool) -> None:
        """At the end of its period; or that is taken back."""
        with _our_errors():
            self.client.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": is_cancelled})

    def cancel(self, subscription_id: str) -> None:
        """At once, without giving anything back."""
        with _our_errors():
            self.client.v1.subscriptions.cancel(subscription_id)

    # Invoices and refunds

    def invoices(self, customer: str) -> list[Invoice]:
        """Newest first."""
        return self._invoices({"customer": customer})

    def unpaid_invoices(self, subscription_id: str) -> list[Invoice]:
        return self._invoices({"subscription": subscription_id, "status": "open"})

    def invoices_of(self, subscription_id: str) -> list[Invoice]:
        return self._invoices({"subscription": subscription_id})

    def refund(self, payment_intent: str, *, cents: int | None, why: str) -> int:
        """All that is left of a payment, or a part; how much. The same wish within a day is one refund."""
        asked: Any = {"payment_intent": payment_intent, "metadata": {"faregate_why": why[:500]}}
        asked |= {} if cents is None else {"amount": cents}
        with _our_errors():
            return self.client.v1.refunds.create(asked, _once("refund", payment_intent, {"amount": cents})).amount

    def refunded_cents(self, payment_intent: str) -> int:
        with _our_errors():
            found = self.client.v1.refunds.list({"payment_intent": payment_intent, "limit": _PAGE}).data
        return sum(one.amount for one in found if one.status not in ("failed", "canceled"))

    # What happened

    def events(self, since: datetime, types: Sequence[str]) -> Iterator[Event]:
        """Newest first; Stripe knows those of thirty days."""
        asked: Any = {"created": {"gte": int(since.timestamp())}, "types": list(types), "limit": _PAGE}
        with _our_errors():
            for one in self.client.v1.events.list(asked).auto_paging_iter():
                yield read.event(one)

    def create_endpoint(self, url: str, types: Sequence[str]) -> str:
        """Stripe sends its events there from now on; the secret that signs them, which is told this once."""
        asked: Any = {"url": url, "enabled_events": list(types), "api_version": API_VERSION, "metadata": {"faregate": "1"}}
        with _our_errors():
            made = self.client.v1.webhook_endpoints.create(asked)
        assert made.secret is not None
        return made.secret

    def endpoints(self) -> list[str]:
        """Where events are sent to."""
        with _our_errors():
            return [one.url for one in self.client.v1.webhook_endpoints.list({"limit": _PAGE}).auto_paging_iter()]

    def _invoices(self, wanted: dict[str, str]) -> list[Invoice]:
        asked: Any = {**wanted, "limit": _PAGE, "expand": ["data.payments"]}
        with _our_errors():
            return [read.invoice(one) for one in self.client.v1.invoices.list(asked).auto_paging_iter()]


@contextmanager
def open_stripe(key: str, *, address: str | None = None) -> Iterator[Stripe]:
    """`address` stands in for https://api.stripe.com, in tests and demonstrations."""
    http = stripe.RequestsClient(timeout=_TIMEOUT_SECONDS)
    addresses: Any = {} if address is None else {"api": address}
    client = stripe.StripeClient(
        key, stripe_version=API_VERSION, base_addresses=addresses, max_network_retries=_RETRIES, http_client=http
    )
    try:
        yield Stripe(client, is_live=is_live_key(key))
    finally:
        http.close()  # type: ignore[no-untyped-call]  # the SDK left its types out here


def _once(kind: str, subject: str, asked: Mapping[str, Any]) -> stripe.RequestOptions:
    """The same wish has the same key, in every process and at every retry; another wish of the same subject has another."""
    return {"idempotency_key": f"faregate:{kind}:{subject}:{_digest(asked)}"}


def _digest(asked: Any) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except stripe.StripeError as error:
        _raise_ours(error)


def _raise_ours(error: stripe.StripeError) -> NoReturn:
    """Faults of the network, of the server and of its rate limits can be tried again; all else is a no."""
    text = str(error.user_message or error)
    status = error.http_status
    if isinstance(error, stripe.APIConnectionError) or status is None or status >= 500 or status in (409, 429):
        raise StripeUnavailable(text) from error
    if status == 404:
        raise StripeLacks(text) from error
    raise StripeRefused(text) from error


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _PAGE):
        yield list(ids[start : start + _PAGE])
