"""The stand-in's hosted pages, as a browser's forms use them."""

from typing import Any

import pytest
import stripe

from tests.billing.stripe.conftest import Shop, period_end, price_of
from tests.support.stripe.running import StandInStripe

GOOD, DECLINED, ASKS = "4242424242424242", "4000000000000002", "4000002500003155"


def checkout(shop: Shop, **more: Any) -> stripe.checkout.Session:
    asked: Any = {
        "mode": "subscription", "line_items": [{"price": shop.pro, "quantity": 1}], "client_reference_id": "account-1",
        "success_url": "http://127.0.0.1/done?id={CHECKOUT_SESSION_ID}", "cancel_url": "http://127.0.0.1/back",
        "subscription_data": {"metadata": {"account": "1"}}, **more,
    }  # fmt: skip
    return shop.client.v1.checkout.sessions.create(asked)


def test_a_purchase_sends_the_buyer_back_with_a_subscription(shop: Shop, stand_in: StandInStripe) -> None:
    session = checkout(shop)
    assert session.url is not None
    status, page, _ = stand_in.browse(session.url)
    assert (status, "Pro: 80.00 USD" in page, 'name="number"' in page) == (200, True, True)
    status, _, onward = stand_in.browse(session.url, email="b@c.test", number=GOOD)
    assert (status, onward) == (303, f"http://127.0.0.1/done?id={session.id}")
    paths = ["subscription", "customer"]
    done: Any = shop.client.v1.checkout.sessions.retrieve(session.id, {"expand": paths})
    assert (done.status, done.payment_status, done.client_reference_id) == ("complete", "paid", "account-1")
    assert (done.subscription.status, done.subscription.metadata["account"], done.customer.email) == ("active", "1", "b@c.test")
    assert "checkout.session.completed" in shop.happened(id=session.id)
    assert stand_in.browse(session.url)[0] == 410


def test_a_refused_card_begins_nothing_and_the_page_says_so(shop: Shop, stand_in: StandInStripe) -> None:
    customer = shop.customer(card=None)
    session = checkout(shop, customer=customer)
    assert session.url is not None
    status, page, _ = stand_in.browse(session.url, email="b@c.test", number=DECLINED)
    assert (status, "Your card was declined." in page) == (402, True)
    assert shop.client.v1.subscriptions.list({"customer": customer, "status": "all"}).data == []
    assert stand_in.browse(session.url, email="b@c.test", number=GOOD)[0] == 303


def test_a_card_that_asks_is_answered_on_a_page_of_its_own(shop: Shop, stand_in: StandInStripe) -> None:
    session = checkout(shop)
    assert session.url is not None
    status, _, onward = stand_in.browse(session.url, email="b@c.test", number=ASKS)
    assert (status, stand_in.browse(onward)[0]) == (303, 200)
    assert stand_in.browse(onward, answer="no")[0] == 402
    assert shop.client.v1.checkout.sessions.retrieve(session.id).status == "open"
    assert stand_in.browse(onward, answer="yes")[0] == 303
    assert shop.client.v1.checkout.sessions.retrieve(session.id).status == "complete"


def test_a_promotion_code_takes_its_part(shop: Shop, stand_in: StandInStripe) -> None:
    coupon = shop.client.v1.coupons.create({"amount_off": 10_00, "currency": "usd", "duration": "once"})
    shop.client.v1.promotion_codes.create({"promotion": {"type": "coupon", "coupon": coupon.id}, "code": "SPRING"})
    session = checkout(shop, allow_promotion_codes=True)
    assert session.url is not None
    assert stand_in.browse(session.url, email="b@c.test", number=GOOD, code="WINTER")[0] == 402
    assert stand_in.browse(session.url, email="b@c.test", number=GOOD, code="spring")[0] == 303
    done = shop.client.v1.checkout.sessions.retrieve(session.id)
    assert (done.amount_subtotal, done.amount_total) == (80_00, 70_00)


def test_a_one_off_purchase_is_a_payment(shop: Shop, stand_in: StandInStripe) -> None:
    product = shop.client.v1.products.create({"name": "Pack"}).id
    price = shop.client.v1.prices.create({"product": product, "currency": "usd", "unit_amount": 20_00}).id
    session = checkout(
        shop, mode="payment", line_items=[{"price": price, "quantity": 2}], subscription_data={},
        payment_intent_data={"metadata": {"pack": "1"}},
    )  # fmt: skip
    assert session.url is not None
    stand_in.browse(session.url, email="b@c.test", number=GOOD)
    done: Any = shop.client.v1.checkout.sessions.retrieve(session.id, {"expand": ["payment_intent"]})
    assert (done.payment_intent.status, done.payment_intent.amount_received) == ("succeeded", 40_00)
    assert done.payment_intent.metadata["pack"] == "1"
    assert [one.quantity for one in shop.client.v1.checkout.sessions.line_items.list(session.id).data] == [2]


def test_a_session_expires_by_its_time_or_by_hand(shop: Shop, stand_in: StandInStripe) -> None:
    old, ended = checkout(shop), checkout(shop)
    assert shop.client.v1.checkout.sessions.expire(ended.id).status == "expired"
    stand_in.advance(days=1)
    assert shop.client.v1.checkout.sessions.retrieve(old.id).status == "expired"
    assert "checkout.session.expired" in shop.happened(id=old.id)
    with pytest.raises(stripe.InvalidRequestError, match="30 minutes to 24 hours"):
        checkout(shop, expires_at=1)


def test_the_portal_upgrades_at_once_downgrades_later_cancels_and_keeps(shop: Shop, stand_in: StandInStripe) -> None:
    customer = shop.customer()
    bought = shop.subscribe(customer)
    page = portal(shop, customer)
    assert "Change to Premium" in stand_in.browse(page)[1]
    assert stand_in.browse(page, action="change", price=shop.premium)[0] == 200
    assert price_of(shop.fetch(bought)) == shop.premium
    assert stand_in.browse(page, action="change", price=shop.pro)[0] == 200
    assert price_of(shop.fetch(bought)) == shop.premium
    assert "ends with its period" in stand_in.browse(page, action="cancel")[1]
    assert shop.fetch(bought).cancel_at_period_end
    assert stand_in.browse(page, action="keep")[0] == 200
    assert stand_in.browse(page, action="change", price=shop.pro)[0] == 200  # the cancellation had taken its place
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    after: Any = shop.fetch(bought)
    assert (after.status, price_of(after), after.latest_invoice.total) == ("active", shop.pro, 80_00)


def test_an_upgrade_with_a_refused_card_changes_nothing_until_the_card_is_changed(shop: Shop, stand_in: StandInStripe) -> None:
    customer = shop.customer()
    bought = shop.subscribe(customer)
    stand_in.steer("card", customer=customer, behaviour="declined")
    page = portal(shop, customer)
    status, text, _ = stand_in.browse(page, action="change", price=shop.premium)
    assert (status, "Your card was declined." in text) == (402, True)
    assert price_of(shop.fetch(bought)) == shop.pro
    assert stand_in.browse(page, action="card", number=GOOD)[0] == 200
    shop.client.v1.invoices.pay(shop.fetch(bought).latest_invoice.id)  # type: ignore[union-attr]  # it was expanded
    assert price_of(shop.fetch(bought)) == shop.premium


def portal(shop: Shop, customer: str) -> str:
    """The address of a portal session that may do everything."""
    products = [{"product": product_of(shop, price), "prices": [price]} for price in (shop.pro, shop.premium)]
    features: Any = {
        "subscription_update": {"enabled": True, "products": products, "default_allowed_updates": ["price"],
                                "proration_behavior": "always_invoice",
                                "schedule_at_period_end": {"conditions": [{"type": "decreasing_item_amount"}]}},
        "subscription_cancel": {"enabled": True, "mode": "at_period_end"},
        "payment_method_update": {"enabled": True}, "invoice_history": {"enabled": True},
    }  # fmt: skip
    configuration = shop.client.v1.billing_portal.configurations.create({"features": features})
    session = shop.client.v1.billing_portal.sessions.create({"customer": customer, "configuration": configuration.id})
    return session.url


def product_of(shop: Shop, price: str) -> str:
    found = shop.client.v1.prices.retrieve(price).product
    assert isinstance(found, str)
    return found
