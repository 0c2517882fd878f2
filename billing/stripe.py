"""Stripe: the one file that imports it, and the few things that are asked of it."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import stripe

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
class Price:
    """A month's price. `lookup_key` is None on one that lost it to another."""

    id: str
    lookup_key: str | None
    product: str
    amount_cents: int
    currency: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Stripe:
    """Every call raises StripeUnavailable or StripeRefused.

    What creates carries an idempotency key made from our own ids, so that asking twice makes one thing.
    """

    client: stripe.StripeClient
    is_live: bool

    def account(self) -> Account:
        with _our_errors():
            found = self.client.v1.accounts.retrieve_current()
        dashboard = found.settings.dashboard if found.settings else None
        return Account(found.id, dashboard.display_name if dashboard else None, found.country, found.default_currency)

    def products(self, ids: Sequence[str]) -> list[Product]:
        """Those of them that exist, archived ones too."""
        with _our_errors():
            found = [one for part in _parts(ids) for one in self.client.v1.products.list({"ids": part, "limit": _PAGE}).data]
        return [_product(one) for one in found]

    def prices(self, product_id: str) -> list[Price]:
        """All monthly ones, archived ones too."""
        with _our_errors():
            pages = self.client.v1.prices.list({"product": product_id, "type": "recurring", "limit": _PAGE})
            return [_price(one) for one in pages.auto_paging_iter()]

    def create_product(self, product_id: str, *, name: str, metadata: Mapping[str, str]) -> Product:
        asked: Any = {"id": product_id, "name": name, "metadata": dict(metadata)}
        with _our_errors():
            return _product(self.client.v1.products.create(asked, _once("product", product_id, asked)))

    def update_product(self, product_id: str, *, name: str, is_active: bool) -> Product:
        with _our_errors():
            return _product(self.client.v1.products.update(product_id, {"name": name, "active": is_active}))

    def create_price(
        self,
        lookup_key: str,
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
            "lookup_key": lookup_key, "transfer_lookup_key": True, "metadata": dict(metadata),
        }  # fmt: skip
        with _our_errors():
            return _price(self.client.v1.prices.create(asked, _once("price", lookup_key, {**asked, "replaces": replaces})))

    def set_price_active(self, price_id: str, *, is_active: bool) -> Price:
        """An archived price begins no subscription any more; those that have it keep it."""
        with _our_errors():
            return _price(self.client.v1.prices.update(price_id, {"active": is_active}))


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


def is_live_key(key: str) -> bool:
    """Whether money moves with it."""
    return key.startswith(("sk_live_", "rk_live_"))


def _once(kind: str, subject: str, asked: Mapping[str, Any]) -> stripe.RequestOptions:
    """The same wish has the same key, in every process and at every retry; another wish of the same subject has another."""
    told = json.dumps(asked, sort_keys=True).encode()
    return {"idempotency_key": f"faregate:{kind}:{subject}:{hashlib.sha256(told).hexdigest()[:32]}"}


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
    raise StripeRefused(text) from error


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _PAGE):
        yield list(ids[start : start + _PAGE])


def _product(found: stripe.Product) -> Product:
    return Product(found.id, found.name, found.active)


def _price(found: stripe.Price) -> Price:
    product = found.product if isinstance(found.product, str) else found.product.id
    return Price(found.id, found.lookup_key, product, found.unit_amount or 0, found.currency, found.active)
