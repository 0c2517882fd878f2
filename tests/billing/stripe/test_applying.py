"""Events that come twice, late, in any order, not at all, or about what can't be fetched: the record ends as Stripe has it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from billing import inbox
from billing.checkout import buy_pack, buy_plan
from billing.inbox import BACKOFF_SECONDS, EventUnknown
from billing.purchases import Swept, apply_due, sweep
from billing.stripe_objects import Event, Subscription
from billing.subscription_changes import cancel
from billing.subscriptions import refresh
from billing.tables import customers
from tests.billing.stripe.market import Market


def told(market: Market, which: str, **links: Any) -> None:
    """An event, as a gateway stores it."""
    now = market.shop.now()
    with market.record() as connection:
        inbox.store(connection, Event(which, "customer.subscription.updated", now, None, is_live=False, links=links), now)


def test_all_events_of_a_thing_are_one_fetch(market: Market) -> None:
    """vm0#10668: one purchase is told of some ten times."""
    market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", actor="test"))
    sweep(market.shop, None)
    with market.record() as connection:
        waiting = inbox.due(connection, market.shop.now())
    for one in waiting:
        market.replay(one.id)
    seen = len(market.stand_in.journal())
    assert apply_due(market.shop) == len(waiting) > 2
    assert [one["method"] for one in market.stand_in.journal()[seen:]] == ["GET"]
    assert apply_due(market.shop) == 0


def test_order_and_repetition_change_nothing(market: Market) -> None:
    """pierreb-devkit#3585: an event that came late wrote an old state over a newer one."""
    account = market.subscribe("ada")
    cancel(market.shop, "ada", actor="test")
    market.advance_past_period(account)
    before = {**market.subscription(account), "fetched_at": None}
    actions = market.audited(account)
    for event in reversed(market.events()):
        market.replay(event["id"])
        apply_due(market.shop)
    assert {**market.subscription(account), "fetched_at": None} == before
    assert market.audited(account) == actions


def test_what_never_came_is_found_by_the_sweep(market: Market) -> None:
    account = market.subscribe("ada")
    market.client.v1.subscriptions.cancel(market.subscription(account)["id"])
    assert apply_due(market.shop) == 0
    assert market.plan(account)[0] == "active"
    found = sweep(market.shop, market.shop.now() - timedelta(hours=2))
    assert found.subscriptions == 1
    assert found.events >= 1
    assert market.plan(account)[0] == "canceled"
    market.settle()
    assert sweep(market.shop, None) == Swept(0, 0)


def test_a_subscription_that_ended_before_we_heard_of_it_is_known_all_the_same(market: Market) -> None:
    """unkey#6412: the first of several writings took away what the others needed."""
    account = market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", actor="test"))
    market.client.v1.subscriptions.cancel(market.client.v1.subscriptions.list().data[0].id)
    market.settle()
    assert market.plan(account) == ("canceled", "pro")
    assert market.subscription(account)["ended_at"] is not None


def test_while_stripe_is_away_events_wait_and_nothing_is_lost(market: Market) -> None:
    account = market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", actor="test"))
    sweep_without_subscriptions(market)
    market.stand_in.steer("trouble", path="/v1/subscriptions/", status=500, count=3)
    assert apply_due(market.shop) > 0
    stuck = [event for event in market.events() if event["problem"]]
    assert "Stripe can't be asked" in stuck[0]["problem"]
    assert apply_due(market.shop) == 0
    market.stand_in.advance(seconds=BACKOFF_SECONDS[0])
    assert apply_due(market.shop) > 0
    assert market.plan(account) == ("active", "pro")
    assert [event for event in market.events() if event["problem"]] == []


def test_an_event_of_what_is_not_there_is_tried_for_days_then_told_and_stops_no_other(market: Market) -> None:
    told(market, "evt_lost", object="subscription", id="sub_nowhere")
    account = market.account("ada")
    market.pay(buy_plan(market.shop, "ada", "pro", actor="test"))
    market.settle()
    assert market.plan(account) == ("active", "pro")
    for seconds in BACKOFF_SECONDS:
        market.stand_in.advance(seconds=seconds)
        apply_due(market.shop)
    with market.record() as connection:
        standing = inbox.backlog(connection)
    assert standing.waiting == 1
    assert (standing.stuck[0].id, standing.stuck[0].next_try_at) == ("evt_lost", None)
    assert "No such subscription: 'sub_nowhere'" in standing.stuck[0].problem
    market.replay("evt_lost")
    with market.record() as connection:
        assert [one.id for one in inbox.due(connection, market.shop.now())] == ["evt_lost"]
        with pytest.raises(EventUnknown):
            inbox.replay(connection, "evt_other", market.shop.now())


def test_an_event_that_we_cannot_read_stops_no_other(market: Market) -> None:
    account = market.account("ada")
    url = buy_pack(market.shop, "ada", 5, cents=5, currency="usd", actor="test")
    market.pay(url)
    price = {"price_data": {"currency": "usd", "unit_amount": 7, "product": "faregate_pack"}, "quantity": 1}
    strange: Any = {"mode": "payment", "line_items": [price], "success_url": "http://x.test/"}
    for metadata in (
        {"faregate_kind": "pack"},
        {"faregate_kind": "pack", "faregate_account": str(uuid4()), "faregate_fares": "5"},
    ):
        strange["metadata"] = metadata
        page = market.client.v1.checkout.sessions.create(strange).url
        assert page is not None
        market.pay(page)
    market.settle()
    assert len(market.packs(account)) == 1
    problems = {event["problem"] for event in market.events() if event["problem"]}
    assert {problem.partition(":")[0] for problem in problems} == {"PackUnclear"}
    assert len(problems) == 2


def test_what_belongs_to_no_account_of_ours_is_left_alone(market: Market) -> None:
    product = market.client.v1.products.create({"name": "Another business"}).id
    recurring: Any = {"product": product, "currency": "usd", "unit_amount": 1, "recurring": {"interval": "month"}}
    price = market.client.v1.prices.create(recurring).id
    stranger = market.client.v1.customers.create({"payment_method": "pm_card_visa"})
    market.client.v1.subscriptions.create({"customer": stranger.id, "items": [{"price": price}]})
    market.settle()
    assert {event["applied_at"] is None for event in market.events()} == {False}
    assert sweep(market.shop, None) == Swept(0, 0)


def test_the_key_of_another_account_ends_nobodys_plan(market: Market) -> None:
    account = market.subscribe("ada")
    market.stand_in.steer("forget")
    assert sweep(market.shop, None) == Swept(0, 0, (market.subscription(account)["id"],))
    assert market.plan(account) == ("active", "pro")


def test_a_price_that_sells_no_plan_of_ours_is_written_down_and_opens_nothing(market: Market) -> None:
    account = market.subscribe("ada")
    which = market.subscription(account)["id"]
    product = market.client.v1.products.create({"name": "Made by hand"}).id
    asked: Any = {"product": product, "currency": "usd", "unit_amount": 1, "recurring": {"interval": "month"}}
    for metadata in ({}, {"faregate_plan": "pro", "faregate_version": "99"}, {"faregate_plan": "pro", "faregate_version": "x"}):
        asked["metadata"] = metadata
        price = market.client.v1.prices.create(asked).id
        item = market.client.v1.subscriptions.retrieve(which)["items"].data[0].id
        market.client.v1.subscriptions.update(which, {"items": [{"id": item, "price": price}]})
        market.settle()
        row = market.subscription(account)
        assert (row["status"], row["plan_code"], row["plan_version"]) == ("active", None, None)


def test_a_customer_whom_we_lost_is_found_by_what_stands_on_the_subscription(market: Market) -> None:
    account = market.subscribe("ada")
    with market.record() as connection:
        connection.execute(customers.delete())
    cancelled = market.subscription(account)["id"]
    market.client.v1.subscriptions.update(cancelled, {"cancel_at_period_end": True})
    market.settle()
    assert market.subscription(account)["cancel_at_period_end"]


def test_who_was_deleted_at_stripe_can_buy_again(market: Market) -> None:
    account = market.subscribe("ada")
    market.client.v1.subscriptions.cancel(market.subscription(account)["id"])
    market.client.v1.customers.delete(str(market.client.v1.customers.list().data[0].id))
    market.settle()
    market.pay(buy_plan(market.shop, "ada", "premium", actor="test"))
    market.settle()
    assert sorted(row["status"] for row in market.subscriptions(account)) == ["active", "canceled"]


def test_of_two_who_fetch_at_once_no_older_word_is_written_over_a_newer(market: Market) -> None:
    account = market.subscribe("ada")
    which = market.subscription(account)["id"]
    asked = []

    class Overtaken:
        """Between Stripe's answer and its writing, it changes there, and somebody else fetches and writes that."""

        def subscription(self, subscription_id: str) -> Subscription:
            answer = market.shop.stripe.subscription(subscription_id)
            asked.append(answer)
            if len(asked) == 1:
                market.client.v1.subscriptions.update(which, {"cancel_at_period_end": True})
                refresh(market.shop, which)
            return answer

    slow: Any = Overtaken()
    refresh(replace(market.shop, stripe=slow), which)
    assert [answer.cancel_at_period_end for answer in asked] == [False, True]
    assert market.subscription(account)["cancel_at_period_end"] is True


def test_old_events_are_let_go_once_they_are_applied(market: Market) -> None:
    market.subscribe("ada")
    with market.record() as connection:
        known = len(market.events())
        assert inbox.forget(connection, market.shop.now() + timedelta(days=inbox.KEPT_DAYS - 1)) == 0
        assert inbox.forget(connection, market.shop.now() + timedelta(days=inbox.KEPT_DAYS + 1)) == known


def sweep_without_subscriptions(market: Market) -> None:
    """The events alone, as the post brings them."""
    for event in market.shop.stripe.events(market.shop.now() - timedelta(days=1), ["customer.subscription.created"]):
        with market.record() as connection:
            inbox.store(connection, event, market.shop.now())
