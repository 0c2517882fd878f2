"""Subscriptions of the stand-in through time: renewals, failures, changes, ends, and what each costs."""

from typing import Any

import pytest
import stripe

from tests.billing.stripe.conftest import Shop, period_end, price_of
from tests.support.stripe.lines import period_end as period_end_of
from tests.support.stripe.running import StandInStripe


def test_a_bought_subscription_is_active_and_renews_monthly(shop: Shop, stand_in: StandInStripe) -> None:
    bought: Any = shop.subscribe(shop.customer())
    assert (bought.status, bought.latest_invoice.status, bought.latest_invoice.amount_paid) == ("active", "paid", 80_00)
    first_end = period_end(bought)
    stand_in.advance(seconds=first_end - bought.created)
    turned: Any = shop.fetch(bought)
    assert turned["items"].data[0].current_period_start == first_end
    assert (turned.status, turned.latest_invoice.status, turned.latest_invoice.billing_reason) == (
        "active",
        "draft",
        "subscription_cycle",
    )
    stand_in.advance(seconds=3600)
    assert shop.fetch(bought).latest_invoice.status == "paid"  # type: ignore[union-attr]  # it was expanded


def test_a_renewal_that_fails_is_tried_again_and_ends_the_subscription(shop: Shop, stand_in: StandInStripe) -> None:
    customer = shop.customer()
    bought = shop.subscribe(customer)
    stand_in.steer("card", customer=customer, behaviour="declined")
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    late: Any = shop.fetch(bought)
    assert (late.status, late.latest_invoice.status, late.latest_invoice.attempt_count) == ("past_due", "open", 1)
    assert late.latest_invoice.next_payment_attempt is not None
    stand_in.advance(days=3)
    assert shop.fetch(bought).latest_invoice.attempt_count == 2  # type: ignore[union-attr]  # it was expanded
    stand_in.advance(days=12)
    ended = shop.fetch(bought)
    assert (ended.status, ended.cancellation_details.reason) == ("canceled", "payment_failed")  # type: ignore[union-attr]
    assert shop.happened(customer=customer).count("invoice.payment_failed") == 4


def test_dunning_may_end_as_unpaid_and_a_payment_brings_it_back(shop: Shop, stand_in: StandInStripe) -> None:
    stand_in.steer("dunning", retry_days=[1], after_retries="unpaid")
    customer = shop.customer()
    bought = shop.subscribe(customer)
    stand_in.steer("card", customer=customer, behaviour="declined")
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600 + 2 * 86400)
    late: Any = shop.fetch(bought)
    assert late.status == "unpaid"
    stand_in.steer("card", customer=customer, behaviour="ok")
    shop.client.v1.invoices.pay(late.latest_invoice.id)
    assert shop.fetch(bought).status == "active"
    stand_in.steer("dunning", retry_days=[3, 5, 7], after_retries="canceled")


def test_a_first_payment_that_fails_is_incomplete_and_expires_after_23_hours(shop: Shop, stand_in: StandInStripe) -> None:
    bought: Any = shop.subscribe(shop.customer("pm_card_chargeCustomerFail"))
    assert (bought.status, bought.latest_invoice.status) == ("incomplete", "open")
    stand_in.advance(seconds=23 * 3600 - 1)
    assert shop.fetch(bought).status == "incomplete"
    stand_in.advance(seconds=1)
    ended: Any = shop.fetch(bought)
    assert (ended.status, ended.latest_invoice.status) == ("incomplete_expired", "void")


def test_error_if_incomplete_begins_nothing(shop: Shop) -> None:
    customer = shop.customer("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.CardError) as refused:
        shop.subscribe(customer, payment_behavior="error_if_incomplete")
    assert refused.value.http_status == 402
    assert shop.client.v1.subscriptions.list({"customer": customer, "status": "all"}).data == []


def test_a_card_that_asks_its_owner_waits_for_the_answer(shop: Shop, stand_in: StandInStripe) -> None:
    paths = ["latest_invoice.payments.data.payment.payment_intent"]
    bought: Any = shop.subscribe(shop.customer("pm_card_authenticationRequired"), expand=paths)
    intent = bought.latest_invoice.payments.data[0].payment.payment_intent
    assert (bought.status, intent.status) == ("incomplete", "requires_action")
    stand_in.browse(intent.next_action.redirect_to_url.url, answer="yes")
    assert shop.fetch(bought).status == "active"


def test_an_upgrade_at_once_bills_the_difference_to_the_second(shop: Shop, stand_in: StandInStripe) -> None:
    bought = shop.subscribe(shop.customer())
    length = period_end(bought) - bought.created
    stand_in.advance(seconds=length // 3)
    moved: Any = shop.move(bought, shop.premium, proration_behavior="always_invoice", payment_behavior="pending_if_incomplete")
    left = length - length // 3
    amounts = [line.amount for line in moved.latest_invoice.lines.data]
    assert amounts == [-round(80_00 * left / length), round(350_00 * left / length)]
    assert (price_of(moved), moved.pending_update, moved.latest_invoice.amount_paid) == (shop.premium, None, sum(amounts))
    assert period_end(moved) == period_end(bought)


@pytest.mark.parametrize("is_paid", [True, False])
def test_an_upgrade_that_is_not_paid_waits_23_hours(shop: Shop, stand_in: StandInStripe, *, is_paid: bool) -> None:
    customer = shop.customer()
    bought = shop.subscribe(customer)
    stand_in.steer("card", customer=customer, behaviour="declined")
    terms = {"proration_behavior": "always_invoice", "payment_behavior": "pending_if_incomplete"}
    moved: Any = shop.move(bought, shop.premium, **terms)
    assert (moved.status, price_of(moved)) == ("active", shop.pro)
    assert moved.pending_update.subscription_items[0].price.id == shop.premium
    if is_paid:
        stand_in.steer("card", customer=customer, behaviour="ok")
        shop.client.v1.invoices.pay(moved.latest_invoice.id)
        assert price_of(shop.fetch(bought)) == shop.premium
        return
    stand_in.advance(seconds=23 * 3600)
    over: Any = shop.fetch(bought)
    assert (price_of(over), over.pending_update, over.latest_invoice.status) == (shop.pro, None, "void")


def test_prorations_wait_for_the_next_invoice(shop: Shop, stand_in: StandInStripe) -> None:
    bought = shop.subscribe(shop.customer())
    stand_in.advance(days=10)
    moved: Any = shop.move(bought, shop.premium)
    assert moved.latest_invoice.id == bought.latest_invoice.id  # type: ignore[union-attr]  # it was expanded
    stand_in.advance(seconds=period_end(bought) - bought.created - 10 * 86400 + 3600)
    renewed: Any = shop.fetch(bought)
    assert len(renewed.latest_invoice.lines.data) == 3
    assert renewed.latest_invoice.total > 350_00


def test_a_downgrade_by_schedule_waits_for_the_end_of_the_period(shop: Shop, stand_in: StandInStripe) -> None:
    bought = shop.subscribe(shop.customer(), items=[{"price": shop.premium}])
    schedule = shop.client.v1.subscription_schedules.create({"from_subscription": bought.id})
    phases: Any = [
        {"items": [{"price": shop.premium}], "end_date": schedule.phases[0].end_date},
        {"items": [{"price": shop.pro}]},
    ]
    shop.client.v1.subscription_schedules.update(schedule.id, {"phases": phases, "end_behavior": "release"})
    assert (price_of(shop.fetch(bought)), shop.fetch(bought).schedule) == (shop.premium, schedule.id)
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    after: Any = shop.fetch(bought)
    assert (price_of(after), after.latest_invoice.total, after.schedule) == (shop.pro, 80_00, None)


def test_a_released_schedule_changes_nothing(shop: Shop, stand_in: StandInStripe) -> None:
    bought = shop.subscribe(shop.customer(), items=[{"price": shop.premium}])
    schedule = shop.client.v1.subscription_schedules.create({"from_subscription": bought.id})
    phases: Any = [{"items": [{"price": shop.premium}]}, {"items": [{"price": shop.pro}]}]
    shop.client.v1.subscription_schedules.update(schedule.id, {"phases": phases})
    shop.client.v1.subscription_schedules.release(schedule.id)
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    assert price_of(shop.fetch(bought)) == shop.premium


def test_a_cancellation_ends_with_the_period_and_can_be_taken_back(shop: Shop, stand_in: StandInStripe) -> None:
    kept, left = shop.subscribe(shop.customer()), shop.subscribe(shop.customer())
    for one in (kept, left):
        going = shop.client.v1.subscriptions.update(one.id, {"cancel_at_period_end": True})
        assert (going.status, going.cancel_at) == ("active", period_end(one))
    back = shop.client.v1.subscriptions.update(kept.id, {"cancel_at_period_end": False})
    assert (back.cancel_at, back.canceled_at) == (None, None)
    stand_in.advance(seconds=period_end(left) - left.created)
    assert (shop.fetch(left).status, shop.fetch(kept).status) == ("canceled", "active")
    with pytest.raises(stripe.InvalidRequestError, match="canceled subscription"):
        shop.client.v1.subscriptions.update(left.id, {"cancel_at_period_end": False})


def test_a_trial_without_a_card_does_what_was_agreed(shop: Shop, stand_in: StandInStripe) -> None:
    customers = {what: shop.customer(card=None) for what in ("cancel", "pause", "create_invoice")}
    begun = {
        what: shop.subscribe(customer, trial_period_days=7, trial_settings={"end_behavior": {"missing_payment_method": what}})
        for what, customer in customers.items()
    }
    assert {one.status for one in begun.values()} == {"trialing"}
    stand_in.advance(days=4)
    assert "customer.subscription.trial_will_end" in shop.happened(id=begun["pause"].id)
    stand_in.advance(days=3, seconds=3600)
    found = {what: shop.fetch(one).status for what, one in begun.items()}
    assert found == {"cancel": "canceled", "pause": "paused", "create_invoice": "past_due"}


def test_a_contract_by_invoice_is_active_at_once_and_overdue_later(shop: Shop, stand_in: StandInStripe) -> None:
    signed: Any = shop.subscribe(shop.customer(card=None), collection_method="send_invoice", days_until_due=14)
    assert (signed.status, signed.latest_invoice.status) == ("active", "open")
    stand_in.advance(days=14)
    assert shop.fetch(signed).status == "past_due"
    stand_in.browse(signed.latest_invoice.hosted_invoice_url, number="4242424242424242")
    assert shop.fetch(signed).status == "active"


def test_a_refund_is_never_more_than_was_paid(shop: Shop) -> None:
    paths = ["latest_invoice.payments"]
    bought: Any = shop.subscribe(shop.customer(), expand=paths)
    intent = bought.latest_invoice.payments.data[0].payment.payment_intent
    part = shop.client.v1.refunds.create({"payment_intent": intent, "amount": 30_00})
    assert part.status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded"):
        shop.client.v1.refunds.create({"payment_intent": intent, "amount": 50_01})
    shop.client.v1.refunds.create({"payment_intent": intent})
    charge = shop.client.v1.charges.list({"payment_intent": intent}).data[0]
    assert (charge.refunded, charge.amount_refunded) == (True, 80_00)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.client.v1.refunds.create({"payment_intent": intent})
    assert refused.value.code == "charge_already_refunded"


def test_a_coupon_counts_for_as_many_invoices_as_it_says(shop: Shop, stand_in: StandInStripe) -> None:
    coupon = shop.client.v1.coupons.create({"percent_off": 25, "duration": "once", "max_redemptions": 1})
    bought: Any = shop.subscribe(shop.customer(), discounts=[{"coupon": coupon.id}])
    assert (bought.latest_invoice.subtotal, bought.latest_invoice.amount_paid) == (80_00, 60_00)
    stand_in.advance(seconds=period_end(bought) - bought.created + 3600)
    assert shop.fetch(bought).latest_invoice.amount_paid == 80_00  # type: ignore[union-attr]  # it was expanded
    with pytest.raises(stripe.InvalidRequestError, match="expired"):
        shop.subscribe(shop.customer(), discounts=[{"coupon": coupon.id}])


def test_the_month_of_a_31st_ends_on_the_last_day() -> None:
    start = 1_801_353_600  # 2027-01-31 00:00 UTC
    monthly, yearly = {"interval": "month", "interval_count": 1}, {"interval": "year", "interval_count": 1}
    ends = [start]
    for _ in range(3):
        ends.append(period_end_of(ends[-1], monthly, start))
    assert [(end - start) // 86400 for end in ends] == [0, 28, 59, 89]
    assert (period_end_of(start, yearly, start) - start) // 86400 == 365
