"""What the stand-in says has the shape that the SDK's classes describe: no key that they do not know, none left out."""

from typing import Any

import pytest
import stripe

from tests.billing.stripe.conftest import Shop, period_end
from tests.support.stripe.running import StandInStripe

CLASSES: dict[str, Any] = {
    "charge": stripe.Charge, "checkout.session": stripe.checkout.Session, "coupon": stripe.Coupon, "customer": stripe.Customer,
    "discount": stripe.Discount, "event": stripe.Event, "invoice": stripe.Invoice, "invoice_payment": stripe.InvoicePayment,
    "invoiceitem": stripe.InvoiceItem, "payment_intent": stripe.PaymentIntent, "payment_method": stripe.PaymentMethod,
    "price": stripe.Price, "product": stripe.Product, "promotion_code": stripe.PromotionCode, "refund": stripe.Refund,
    "subscription": stripe.Subscription, "subscription_item": stripe.SubscriptionItem, "webhook_endpoint": stripe.WebhookEndpoint,
    "subscription_schedule": stripe.SubscriptionSchedule, "billing_portal.configuration": stripe.billing_portal.Configuration,
    "billing_portal.session": stripe.billing_portal.Session,
}  # fmt: skip


def faults(thing: dict[str, Any], described: Any, path: str) -> list[str]:
    """Keys that are not described, and described ones that are always there but missing; inner objects too."""
    hints = {name: str(hint) for name, hint in described.__annotations__.items() if name not in ("OBJECT_NAME", "deleted")}
    found = [f"{path}.{name} is unknown" for name in thing if name not in hints]
    always = [name for name, hint in hints.items() if "Optional" not in hint and "None" not in hint and "NotRequired" not in hint]
    found += [f"{path}.{name} is missing" for name in always if name not in thing]
    inner = described.__dict__.get("_inner_class_types", {})
    for name, value in thing.items():
        for one in value if isinstance(value, list) else [value]:
            if name in inner and isinstance(one, dict):
                found += faults(one, inner[name], f"{path}.{name}")
    return found


def everything_happens(shop: Shop, stand_in: StandInStripe) -> None:
    customer = shop.customer()
    coupon = shop.client.v1.coupons.create({"percent_off": 10, "duration": "forever"})
    shop.client.v1.promotion_codes.create({"promotion": {"type": "coupon", "coupon": coupon.id}})
    bought = shop.subscribe(customer, discounts=[{"coupon": coupon.id}])
    shop.client.v1.subscription_schedules.create({"from_subscription": bought.id})
    stand_in.steer("card", customer=customer, behaviour="declined")
    shop.move(bought, shop.premium, proration_behavior="always_invoice", payment_behavior="pending_if_incomplete")
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    other = shop.subscribe(shop.customer(), expand=["latest_invoice.payments"])
    paid: Any = other.latest_invoice
    shop.client.v1.refunds.create({"payment_intent": paid.payments.data[0].payment.payment_intent})
    shop.client.v1.invoice_items.create({"customer": customer, "amount": 5, "currency": "usd"})
    shop.client.v1.invoices.create({"customer": customer, "pending_invoice_items_behavior": "include"})
    shop.client.v1.webhook_endpoints.create({"url": "http://127.0.0.1:9", "enabled_events": ["customer.deleted"]})
    shop.client.v1.billing_portal.configurations.create({"features": {"invoice_history": {"enabled": True}}})
    shop.client.v1.billing_portal.sessions.create({"customer": customer})
    session: Any = {"mode": "subscription", "line_items": [{"price": shop.pro}], "success_url": "http://127.0.0.1/"}
    shop.client.v1.checkout.sessions.create(session)


@pytest.fixture
def things(shop: Shop, stand_in: StandInStripe) -> list[dict[str, Any]]:
    everything_happens(shop, stand_in)
    return list(stand_in.steer("things"))


def test_every_object_is_as_the_sdk_describes_it(things: list[dict[str, Any]]) -> None:
    assert {thing["object"] for thing in things} == CLASSES.keys()
    found = {fault for thing in things for fault in faults(thing, CLASSES[thing["object"]], thing["object"])}
    assert found == set()


def test_lines_of_invoices_too(things: list[dict[str, Any]]) -> None:
    invoices = [thing for thing in things if thing["object"] == "invoice"]
    lines = [line for invoice in invoices for line in invoice["lines"]["data"]]
    assert {line["parent"]["type"] for line in lines} == {"subscription_item_details", "invoice_item_details"}
    assert {fault for line in lines for fault in faults(line, stripe.InvoiceLineItem, "line")} == set()


@pytest.mark.parametrize("kind", ["subscription", "invoice", "payment_intent", "charge"])
def test_statuses_are_words_that_the_sdk_knows(things: list[dict[str, Any]], kind: str) -> None:
    known = str(CLASSES[kind].__annotations__["status"])
    words = {thing["status"] for thing in things if thing["object"] == kind}
    assert words
    assert [word for word in words if f"'{word}'" not in known] == []
