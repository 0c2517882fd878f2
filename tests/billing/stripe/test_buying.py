"""A plan is bought, changed, given up and given back: what the record says is what Stripe says, whatever happened between."""

import threading
from typing import Any

import pytest
from sqlalchemy.exc import DataError, IntegrityError

from billing import packs
from billing.checkout import CodeUnknown, NotForSale, PackWrong, SubscribedAlready, buy_pack, buy_plan, portal
from billing.stripe import StripeUnavailable
from billing.subscription_changes import (
    ContractWrong,
    InvoiceUnknown,
    NothingPaid,
    NotNow,
    NotSubscribed,
    WrongDirection,
    begin_contract,
    cancel,
    downgrade,
    invoices,
    reactivate,
    refund,
    upgrade,
)
from tests.billing.stripe.market import DECLINED, Market

ONCE: Any = {"actor": "test"}


def test_a_plan_is_bought_on_a_hosted_page(market: Market) -> None:
    account = market.account("ada")
    url = buy_plan(market.shop, "ada", "pro", **ONCE)
    market.settle()
    assert market.subscriptions(account) == []
    assert market.pay(url) == 303
    market.settle()
    row = market.subscription(account)
    assert (row["status"], row["plan_code"], row["plan_version"], row["amount_cents"]) == ("active", "pro", 1, 80_00)
    assert market.audited(account) == ["account.create", "checkout.open_plan", "subscription.changed"]


def test_two_clicks_are_one_page_and_another_plan_ends_the_first(market: Market) -> None:
    market.account("ada")
    pro = buy_plan(market.shop, "ada", "pro", **ONCE)
    assert buy_plan(market.shop, "ada", "pro", **ONCE) == pro
    premium = buy_plan(market.shop, "ada", "premium", **ONCE)
    assert premium != pro
    assert market.pay(pro) == 410
    assert market.pay(premium) == 303


def test_two_clicks_at_once_are_one_page(market: Market) -> None:
    market.account("ada")
    urls: list[str] = []
    clicks = [threading.Thread(target=lambda: urls.append(buy_plan(market.shop, "ada", "pro", **ONCE))) for _ in range(2)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert len(urls) == 2
    assert len(set(urls)) == 1


def test_a_page_that_ran_out_is_followed_by_a_new_one(market: Market) -> None:
    market.account("ada")
    old = buy_plan(market.shop, "ada", "pro", **ONCE)
    market.advance(days=1.1)
    new = buy_plan(market.shop, "ada", "pro", **ONCE)
    assert (market.pay(old), market.pay(new)) == (410, 303)


def test_who_has_a_subscription_is_sold_no_second_one_even_before_we_heard_of_the_first(market: Market) -> None:
    account = market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", **ONCE))
    with pytest.raises(SubscribedAlready):
        buy_plan(market.shop, "ada", "premium", **ONCE)
    assert market.plan(account) == ("active", "pro")  # it heard while it asked


def test_of_two_raced_purchases_the_later_one_ends_and_is_given_back_once(market: Market) -> None:
    """unkey#6412: a double click made two subscriptions. The second page here stands in for the one that a race leaves open."""
    account = market.account("ada")
    first = buy_plan(market.shop, "ada", "pro", **ONCE)
    customer = market.client.v1.checkout.sessions.list().data[0].customer
    price = market.client.v1.prices.list({"lookup_keys": ["premium@1"]}).data[0].id
    asked: Any = {
        "mode": "subscription", "customer": str(customer), "line_items": [{"price": price, "quantity": 1}],
        "success_url": "http://127.0.0.1/", "subscription_data": {"metadata": {"faregate_account": str(account)}},
    }  # fmt: skip
    second = market.client.v1.checkout.sessions.create(asked)
    assert second.url is not None
    assert market.pay(first) == 303
    market.stand_in.advance(seconds=1)
    assert market.pay(second.url) == 303
    market.settle()
    assert market.plan(account) == ("active", "pro")
    market.settle()
    given_back = market.client.v1.refunds.list().data
    assert [one.amount for one in given_back] == [350_00]
    assert market.audited(account).count("subscription.end_double") == 1


def test_a_second_one_that_was_made_at_stripe_by_hand_is_left_alone(market: Market) -> None:
    market.subscribe("ada")
    known = market.client.v1.subscriptions.list().data[0]
    price = market.client.v1.prices.list({"lookup_keys": ["premium@1"]}).data[0].id
    market.stand_in.advance(seconds=1)
    market.client.v1.subscriptions.create(
        {
            "customer": str(known.customer),
            "items": [{"price": price}],
            "default_payment_method": str(known.default_payment_method),
        }
    )
    market.settle()
    assert [one.status for one in market.client.v1.subscriptions.list().data] == ["active", "active"]
    assert market.client.v1.refunds.list().data == []


def test_an_upgrade_is_in_force_at_once_and_paid_for_the_rest_of_the_month(market: Market) -> None:
    account = market.subscribe("ada")
    half = (market.subscription(account)["current_period_end"] - market.shop.now()) / 2
    market.advance(seconds=int(half.total_seconds()))
    changed = upgrade(market.shop, "ada", "premium", **ONCE)
    assert changed.pay_url is None
    assert market.plan(account) == ("active", "premium")
    assert invoices(market.shop, "ada")[0].total_cents == (350_00 - 80_00) // 2
    with pytest.raises(WrongDirection):
        upgrade(market.shop, "ada", "pro", **ONCE)


def test_an_upgrade_that_is_not_paid_waits_and_changes_nothing(market: Market) -> None:
    account = market.subscribe("ada")
    customer = str(market.client.v1.subscriptions.list().data[0].customer)
    market.stand_in.steer("card", customer=customer, behaviour="declined")
    changed = upgrade(market.shop, "ada", "premium", **ONCE)
    assert market.plan(account) == ("active", "pro")
    assert changed.pay_url is not None
    assert market.stand_in.browse(changed.pay_url, number="4242 4242 4242 4242")[0] == 200
    market.settle()
    assert market.plan(account) == ("active", "premium")


def test_a_downgrade_waits_for_the_end_of_the_period(market: Market) -> None:
    account = market.subscribe("ada", "premium")
    downgrade(market.shop, "ada", "pro", **ONCE)
    row = market.subscription(account)
    assert (row["plan_code"], row["pending_plan_code"], row["pending_at"]) == ("premium", "pro", row["current_period_end"])
    market.advance_past_period(account, days=-1)
    assert market.plan(account) == ("active", "premium")
    market.advance_past_period(account)
    row = market.subscription(account)
    assert (row["plan_code"], row["pending_plan_code"], row["amount_cents"]) == ("pro", None, 80_00)


def test_a_downgrade_can_be_taken_back_or_turned_into_a_cancellation(market: Market) -> None:
    account = market.subscribe("ada", "premium")
    downgrade(market.shop, "ada", "pro", **ONCE)
    reactivate(market.shop, "ada", **ONCE)
    assert market.subscription(account)["pending_plan_code"] is None
    downgrade(market.shop, "ada", "pro", **ONCE)
    cancel(market.shop, "ada", **ONCE)
    row = market.subscription(account)
    assert (row["cancel_at_period_end"], row["pending_plan_code"]) == (True, None)
    market.advance_past_period(account)
    assert market.plan(account) == ("canceled", "premium")


def test_a_cancellation_ends_with_the_period_unless_it_is_taken_back(market: Market) -> None:
    account = market.subscribe("ada")
    cancel(market.shop, "ada", **ONCE)
    row = market.subscription(account)
    assert (row["status"], row["cancel_at_period_end"], row["cancel_at"]) == ("active", True, row["current_period_end"])
    reactivate(market.shop, "ada", **ONCE)
    assert market.subscription(account)["cancel_at"] is None
    with pytest.raises(NotNow, match="Nothing waits"):
        reactivate(market.shop, "ada", **ONCE)
    cancel(market.shop, "ada", **ONCE)
    market.advance_past_period(account)
    row = market.subscription(account)
    assert (row["status"], row["ended_at"] is not None) == ("canceled", True)
    with pytest.raises(NotSubscribed):
        cancel(market.shop, "ada", **ONCE)
    assert market.pay(buy_plan(market.shop, "ada", "pro", **ONCE)) == 303
    market.settle()
    assert market.plan(account) == ("active", "pro")


def test_dunning_goes_from_past_due_to_the_end_and_says_since_when(market: Market) -> None:
    account = market.subscribe("ada")
    ends = market.subscription(account)["current_period_end"]
    customer = str(market.client.v1.subscriptions.list().data[0].customer)
    market.stand_in.steer("card", customer=customer, behaviour="declined")
    market.advance_past_period(account)
    row = market.subscription(account)
    assert row["status"] == "past_due"
    assert 0 <= (row["past_due_since"] - ends).total_seconds() <= 2 * 3600
    market.advance(days=4)
    assert market.subscription(account)["past_due_since"] == row["past_due_since"]
    with pytest.raises(NotNow, match="past_due"):
        upgrade(market.shop, "ada", "premium", **ONCE)
    market.advance(days=15)
    assert market.plan(account)[0] == "canceled"


def test_who_pays_late_is_no_longer_past_due(market: Market) -> None:
    account = market.subscribe("ada")
    customer = str(market.client.v1.subscriptions.list().data[0].customer)
    market.stand_in.steer("card", customer=customer, behaviour="declined")
    market.advance_past_period(account)
    market.stand_in.steer("card", customer=customer, behaviour="ok")
    market.advance(days=4)
    row = market.subscription(account)
    assert (row["status"], row["past_due_since"]) == ("active", None)


def test_a_contract_is_billed_by_invoice_and_in_force_before_it_is_paid(market: Market) -> None:
    account = market.account("bank")
    terms: Any = {"cents": 5_000_00, "currency": "usd", "days_until_due": 14}
    begin_contract(market.shop, "bank", "enterprise", **terms, **ONCE)
    row = market.subscription(account)
    assert (row["status"], row["plan_code"], row["amount_cents"]) == ("active", "enterprise", 5_000_00)
    assert row["collection_method"] == "send_invoice"
    with pytest.raises(SubscribedAlready):
        begin_contract(market.shop, "bank", "enterprise", **terms, **ONCE)
    with pytest.raises(NotNow, match="contract"):
        upgrade(market.shop, "bank", "premium", **ONCE)
    market.advance(days=15)
    row = market.subscription(account)
    assert (row["status"], row["past_due_since"]) == ("past_due", invoices(market.shop, "bank")[0].due_at)


def test_what_was_paid_is_given_back_once_and_no_more_than_that(market: Market) -> None:
    account = market.subscribe("ada")
    bill = invoices(market.shop, "ada")[0]
    assert bill.number is not None
    assert refund(market.shop, "ada", bill.number, cents=30_00, why="an outage", **ONCE) == 30_00
    with pytest.raises(NothingPaid, match="5,000 cents"):
        refund(market.shop, "ada", bill.id, cents=60_00, why="too much", **ONCE)
    assert refund(market.shop, "ada", bill.id, cents=None, why="the rest", **ONCE) == 50_00
    with pytest.raises(NothingPaid):
        refund(market.shop, "ada", bill.id, cents=None, why="again", **ONCE)
    with pytest.raises(InvoiceUnknown):
        refund(market.shop, "ada", "in_other", cents=None, why="whose?", **ONCE)
    assert market.audited(account).count("invoice.refund") == 2
    assert market.plan(account) == ("active", "pro")


def test_a_pack_is_bought_once_however_often_it_is_told(market: Market) -> None:
    account = market.account("ada")
    market.pay(buy_pack(market.shop, "ada", 1000, cents=5_00, currency="usd", **ONCE))
    market.settle()
    for event in market.events():
        market.replay(event["id"])
    market.settle()
    assert [(pack["fares"], pack["amount_cents"], pack["refunded_at"]) for pack in market.packs(account)] == [(1000, 5_00, None)]
    market.pay(buy_pack(market.shop, "ada", 1000, cents=5_00, currency="usd", **ONCE))
    market.settle()
    assert len(market.packs(account)) == 2


@pytest.mark.parametrize(("fares", "cents"), [(0, 1), (-1, 1), (2**63, 1), (1, 0), (1, -5_00), (1, 2**31)])
def test_no_purchase_is_negative_or_beyond_its_bounds(market: Market, fares: int, cents: int) -> None:
    """CVE-2026-71479 of new-api: a quota that ran over became a negative charge, which is a gift to oneself."""
    account = market.account("ada")
    with pytest.raises(PackWrong):
        buy_pack(market.shop, "ada", fares, cents=cents, currency="usd", **ONCE)
    bought: Any = {"fares": fares, "amount_cents": cents, "currency": "usd", "payment_intent": "pi_1", "at": market.shop.now()}
    if fares != 1:
        with market.record() as connection, pytest.raises((IntegrityError, DataError)):
            packs.bought(connection, account, **bought)


@pytest.mark.parametrize(("cents", "days"), [(0, 1), (-1, 1), (2**31, 1), (1, 0), (1, 366)])
def test_no_contract_is_free_or_beyond_its_bounds(market: Market, cents: int, days: int) -> None:
    market.account("bank")
    with pytest.raises(ContractWrong):
        begin_contract(market.shop, "bank", "enterprise", cents=cents, currency="usd", days_until_due=days, actor="test")


def test_a_pack_goes_when_all_of_it_is_given_back_though_the_refund_is_told_of_first(market: Market) -> None:
    account = market.account("ada")
    market.pay(buy_pack(market.shop, "ada", 1000, cents=5_00, currency="usd", **ONCE))
    payment = market.client.v1.payment_intents.list().data[0].id
    market.client.v1.refunds.create({"payment_intent": payment, "amount": 2_00})
    market.settle()
    assert [pack["refunded_at"] for pack in market.packs(account)] == [None]
    market.client.v1.refunds.create({"payment_intent": payment})
    market.forget_packs()
    told = {event["type"]: event["id"] for event in market.events()}
    market.replay(told["charge.refunded"])
    market.settle()
    market.replay(told["checkout.session.completed"])
    market.settle()
    assert [pack["refunded_at"] is None for pack in market.packs(account)] == [False]


def test_promotion_codes_are_typed_there_or_given_beforehand(market: Market) -> None:
    coupon = market.client.v1.coupons.create({"percent_off": 50, "duration": "once"})
    market.client.v1.promotion_codes.create({"promotion": {"type": "coupon", "coupon": coupon.id}, "code": "LAUNCH"})
    market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", code="LAUNCH", **ONCE))
    market.account("eve")
    market.pay(buy_plan(market.shop, "eve", "pro", **ONCE), code="launch")
    market.settle()
    assert [invoices(market.shop, name)[0].total_cents for name in ("ada", "eve")] == [40_00, 40_00]
    with pytest.raises(CodeUnknown):
        buy_plan(market.shop, "ada", "pro", code="FREE", **ONCE)


def test_what_has_no_price_is_not_sold(market: Market) -> None:
    market.account("ada")
    for plan in ("free", "enterprise"):
        with pytest.raises(NotForSale, match="not bought"):
            buy_plan(market.shop, "ada", plan, **ONCE)
    market.stand_in.steer("forget")
    with pytest.raises(NotForSale, match="faregate stripe sync"):
        buy_plan(market.shop, "ada", "pro", **ONCE)


def test_a_refused_card_begins_nothing(market: Market) -> None:
    account = market.account("ada")
    url = buy_plan(market.shop, "ada", "pro", **ONCE)
    assert market.pay(url, DECLINED) == 402
    market.settle()
    assert market.subscriptions(account) == []
    assert market.pay(url) == 303


def test_the_customers_own_page_changes_and_cancels_as_the_commands_do(market: Market) -> None:
    account = market.subscribe("ada", "premium")
    url = portal(market.shop, "ada", currency="usd", **ONCE)
    assert "Change to Pro" in market.stand_in.browse(url)[1]
    prices = market.client.v1.prices.list({"lookup_keys": ["pro@1"]}).data
    market.stand_in.browse(url, action="change", price=prices[0].id)
    market.settle()
    assert (market.plan(account), market.subscription(account)["pending_plan_code"]) == (("active", "premium"), "pro")
    again = portal(market.shop, "ada", currency="usd", **ONCE)
    assert len(market.client.v1.billing_portal.configurations.list().data) == 1
    assert again != url


def test_a_lost_answer_makes_no_second_customer_and_no_second_page(market: Market) -> None:
    market.account("ada")
    for path in ("/v1/customers", "/v1/checkout/sessions"):
        market.stand_in.steer("trouble", path=path, status=500, count=3, is_done=True)
        with pytest.raises(StripeUnavailable):
            buy_plan(market.shop, "ada", "pro", **ONCE)
    url = buy_plan(market.shop, "ada", "pro", **ONCE)
    assert len(market.client.v1.customers.list().data) == 1
    assert [one.url for one in market.client.v1.checkout.sessions.list().data] == [url]
