"""A stand-in Stripe, new to each module, spoken to by the real SDK, and customers who buy there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import stripe

from billing.stripe import open_stripe
from tests.billing.stripe.market import Market, open_market
from tests.support.stripe.running import KEY, StandInStripe, running_stripe

START = 1_793_491_200  # 2026-11-01 00:00 UTC: the month has thirty days


@pytest.fixture(scope="package")
def server() -> Iterator[StandInStripe]:
    """Its clock stands until a test moves it."""
    with running_stripe(now=START) as running:
        yield running


@pytest.fixture(scope="module")
def stand_in(server: StandInStripe) -> StandInStripe:
    """One that knows nothing yet."""
    server.steer("forget")
    return server


@pytest.fixture
def client(stand_in: StandInStripe) -> Iterator[stripe.StripeClient]:
    http = stripe.RequestsClient(timeout=20)
    yield stripe.StripeClient(KEY, base_addresses={"api": stand_in.url}, max_network_retries=2, http_client=http)
    http.close()  # type: ignore[no-untyped-call]  # the SDK left its types out here


@dataclass(frozen=True, slots=True)
class Shop:
    """Two plans, and the few things that most tests do with them."""

    client: stripe.StripeClient
    pro: str
    premium: str

    def customer(self, card: str | None = "pm_card_visa") -> str:
        made = self.client.v1.customers.create({"email": "a@b.test", **({"payment_method": card} if card else {})})
        if card:
            chosen = self.client.v1.payment_methods.list({"customer": made.id}).data[0].id
            self.client.v1.customers.update(made.id, {"invoice_settings": {"default_payment_method": chosen}})
        return made.id

    def subscribe(self, customer: str, **more: Any) -> stripe.Subscription:
        asked: Any = {"customer": customer, "items": [{"price": self.pro}], "expand": ["latest_invoice"], **more}
        return self.client.v1.subscriptions.create(asked)

    def fetch(self, subscription: stripe.Subscription) -> stripe.Subscription:
        return self.client.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice", "pending_update"]})

    def move(self, subscription: stripe.Subscription, price: str, **more: Any) -> stripe.Subscription:
        asked: Any = {"items": [{"id": subscription["items"].data[0].id, "price": price}], "expand": ["latest_invoice"], **more}
        return self.client.v1.subscriptions.update(subscription.id, asked)

    def happened(self, **of: str) -> list[str]:
        """Types of events of an object, oldest first."""
        found = self.client.v1.events.list({"limit": 100}).auto_paging_iter()
        told = [(str(one.type), one.data.object) for one in found]
        return [word for word, thing in told if all(name in thing and thing[name] == value for name, value in of.items())][::-1]


@pytest.fixture
def shop(client: stripe.StripeClient) -> Shop:
    prices = []
    for name, cents in (("Pro", 80_00), ("Premium", 350_00)):
        product = client.v1.products.create({"name": name})
        made = client.v1.prices.create(
            {"product": product.id, "currency": "usd", "unit_amount": cents, "recurring": {"interval": "month"}}
        )
        prices.append(made.id)
    return Shop(client, *prices)


@pytest.fixture
def market(database_url: str, stand_in: StandInStripe) -> Iterator[Market]:
    """Nothing was bought there yet."""
    stand_in.steer("forget")
    with open_stripe(KEY, address=stand_in.url) as ours, open_market(database_url, stand_in, ours) as opened:
        yield opened


def price_of(subscription: stripe.Subscription) -> str:
    found: str = subscription["items"].data[0].price.id
    return found


def period_end(subscription: stripe.Subscription) -> int:
    found: int = subscription["items"].data[0].current_period_end
    return found
