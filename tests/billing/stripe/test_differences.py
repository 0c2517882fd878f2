"""The record held against Stripe: nothing after any life, and what was missed in words; looking changes nothing."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import delete, update

from billing import inbox
from billing.inbox import BACKOFF_SECONDS
from billing.purchases import apply_due, sweep
from billing.stripe_differences import compare, named, of_the_record
from billing.subscription_changes import cancel
from billing.tables import subscriptions
from gateway.settings import Settings
from gateway.stripe_proof import compare_with_stripe
from tests.billing.stripe.market import Market
from tests.support.stripe.running import KEY


def found(market: Market) -> Sequence[str]:
    return [one.what for one in (*compare(market.shop).stale.values(), *of_the_record(market.shop))]


def test_who_buys_cancels_and_pays_late_differs_in_nothing(market: Market) -> None:
    ada = market.subscribe("ada")
    market.subscribe("bob", "premium")
    cancel(market.shop, "ada", actor="test")
    market.settle()
    assert (found(market), compare(market.shop).subscriptions) == ([], 2)
    market.advance_past_period(ada)
    assert (found(market), compare(market.shop).subscriptions) == ([], 1)


def test_what_never_came_is_said_with_both_sides_and_left_to_the_sweep(market: Market) -> None:
    ada, bob = market.subscribe("ada"), market.subscribe("bob")
    of_ada, of_bob = market.subscription(ada)["id"], market.subscription(bob)["id"]
    market.client.v1.subscriptions.update(of_ada, {"cancel_at_period_end": True})
    market.client.v1.subscriptions.cancel(of_bob)
    said = compare(market.shop).stale
    assert f"{of_ada}: cancel_at_period_end is False, at Stripe True" in said[of_ada].what
    assert said[of_bob].what == f"{of_bob} is active in the record, and has ended at Stripe"
    assert [one.name for one in named(market.shop, [said[of_ada], said[of_bob]])] == ["ada", "bob"]
    assert found(market) == [said[of_ada].what, said[of_bob].what]  # looking has changed nothing
    sweep(market.shop, None)
    assert compare(market.shop).stale == {}


def test_a_subscription_that_the_record_lacks_is_said_and_a_strangers_is_not(market: Market) -> None:
    ada = market.subscribe("ada")
    mine = market.subscription(ada)["id"]
    price = market.subscription(ada)["price_id"]
    with market.record() as connection:
        connection.execute(delete(subscriptions))
    stranger = market.client.v1.customers.create({"email": "x@y.test", "payment_method": "pm_card_visa"})
    card = market.client.v1.payment_methods.list({"customer": stranger.id}).data[0].id
    market.client.v1.customers.update(stranger.id, {"invoice_settings": {"default_payment_method": card}})
    market.client.v1.subscriptions.create({"customer": stranger.id, "items": [{"price": price}]})
    assert found(market) == [f"Stripe has {mine} (active), and the record does not"]


def test_two_at_once_and_one_that_pays_for_nothing_are_said(market: Market) -> None:
    ada, bob = market.subscribe("ada"), market.subscribe("bob")
    with market.record() as connection:
        of_bob = subscriptions.c.account_id == bob
        connection.execute(update(subscriptions).where(of_bob).values(account_id=ada, plan_code=None, plan_version=None))
    double, planless = of_the_record(market.shop)
    assert double.what.startswith("several are paid for at once: sub_")
    assert "sells no known plan" in planless.what


def test_an_event_that_was_given_up_and_one_that_waits_are_said(market: Market) -> None:
    market.subscribe("ada")
    event = market.events()[0]["id"]
    market.replay(event)
    with market.record() as connection:
        [waiting] = inbox.due(connection, market.shop.now())
        inbox.failed(connection, [waiting], "it says nothing", market.shop.now(), is_outage=False)
    assert found(market) == []
    market.stand_in.advance(seconds=7200)
    assert "events of Stripe's that are not applied: 1" in " / ".join(found(market))
    with market.record() as connection:
        for _ in BACKOFF_SECONDS:
            [again] = inbox.due(connection, market.shop.now().replace(year=2099))
            inbox.failed(connection, [again], "it says nothing", market.shop.now(), is_outage=False)
    assert f"the event {event} " in found(market)[0]
    assert f"`faregate stripe replay {event}`" in found(market)[0]
    market.replay(event)
    while apply_due(market.shop):
        pass
    assert found(market) == []


def test_the_proof_asks_twice_and_says_when_stripe_can_not_be_asked(market: Market, database_url: str) -> None:
    ada = market.subscribe("ada")
    known = market.subscription(ada)["id"]
    market.client.v1.subscriptions.cancel(known)

    def asked(**more: str | None) -> list[tuple[str, str | None, str]]:
        needed = {"database_url": database_url, "redis_url": "unused", "key_pepper": "p" * 32}
        settings = Settings.model_validate({**needed, "stripe_key": KEY, "stripe_api_base": market.stand_in.url, **more})
        proof = asyncio.run(compare_with_stripe(settings, market.shop.now(), again_seconds=0.01))
        return [(one.kind, one.name, one.what) for one in proof]

    assert asked() == [("subscription", "ada", f"{known} is active in the record, and has ended at Stripe")]
    [(kind, _, what)] = asked(stripe_api_base="http://127.0.0.1:1")
    assert (kind, "were not compared with Stripe" in what) == ("unproved", True)
    assert asked(stripe_key=None, stripe_api_base=None) == []
