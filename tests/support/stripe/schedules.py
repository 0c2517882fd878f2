"""Subscription schedules: a change of price that waits for the end of the period."""

from tests.support.stripe import life, subscriptions
from tests.support.stripe.faults import Fault, not_stood_in
from tests.support.stripe.world import Thing, World


def create(world: World, params: Thing) -> Thing:
    """From a subscription; its first phase is the period that it is in."""
    if "from_subscription" not in params:
        raise not_stood_in("schedules that begin a subscription")
    subscription = subscriptions.living(world, params["from_subscription"], param="from_subscription")
    if subscription["schedule"]:
        raise Fault(
            f"The subscription is already attached to a schedule: `{subscription['schedule']}`.", param="from_subscription"
        )
    period = life.period_of(subscription)
    phase = _phase(subscription, subscription["items"]["data"], period["start"], period["end"])
    settings = {
        "application_fee_percent": None, "automatic_tax": {"enabled": False, "disabled_reason": None, "liability": None},
        "billing_cycle_anchor": "automatic", "billing_thresholds": None, "collection_method": subscription["collection_method"],
        "default_payment_method": None, "description": None, "on_behalf_of": None, "transfer_data": None,
        "invoice_settings": {"account_tax_ids": None, "days_until_due": None, "issuer": {"type": "self"}},
    }  # fmt: skip
    made = world.add(
        "sub_sched", "subscription_schedule", application=None, billing_mode=subscription["billing_mode"], canceled_at=None,
        completed_at=None, current_phase={"start_date": period["start"], "end_date": period["end"]},
        customer=subscription["customer"], default_settings=settings, end_behavior="release", metadata={}, pause_schedules=[],
        phases=[phase], released_at=None, released_subscription=None, status="active", subscription=subscription["id"],
        test_clock=None,
    )  # fmt: skip
    subscription["schedule"] = made["id"]
    world.emit("subscription_schedule.created", made)
    return made


def update(world: World, params: Thing, which: str) -> Thing:
    """Phases replace those that were; what is over or begun keeps its start."""
    schedule = _active(world, which)
    if "phases" in params:
        _set_phases(world, schedule, params["phases"])
    schedule["end_behavior"] = params.get("end_behavior", schedule["end_behavior"])
    world.emit("subscription_schedule.updated", schedule)
    return schedule


def release(world: World, params: Thing, which: str) -> Thing:
    """The subscription stays as it is, and nothing waits any more."""
    schedule = _active(world, which)
    _let_go(world, schedule)
    return schedule


def _active(world: World, which: str) -> Thing:
    schedule = world.get("subscription_schedule", which)
    if schedule["status"] != "active":
        raise Fault(f"You cannot update a subscription schedule that is {schedule['status']}.")
    return schedule


def _set_phases(world: World, schedule: Thing, given: list[Thing]) -> None:
    subscription = world.get("subscription", schedule["subscription"])
    start = given[0].get("start_date", schedule["current_phase"]["start_date"])
    if start != schedule["current_phase"]["start_date"]:
        raise Fault("The first phase must keep the start of the current one.", param="phases[0][start_date]")
    phases = []
    for number, one in enumerate(given):
        end = one.get("end_date") or life.period_of(subscription)["end"] + number
        items = [
            {"price": world.get("price", item.get("price"), param="items"), "quantity": item.get("quantity", 1)}
            for item in one["items"]
        ]
        phases.append(_phase(subscription, items, start, end, one.get("proration_behavior", "none")))
        start = end
    schedule["phases"] = phases
    for phase in phases[1:]:
        _wait_for(world, schedule, phase)


def _wait_for(world: World, schedule: Thing, phase: Thing) -> None:
    world.at(phase["start_date"], lambda: _begin(world, schedule, phase), first=True)


def _begin(world: World, schedule: Thing, phase: Thing) -> None:
    if schedule["status"] != "active" or phase not in schedule["phases"]:
        return
    subscription = world.get("subscription", schedule["subscription"])
    if subscription["status"] in life.ENDED:
        return
    schedule["current_phase"] = {"start_date": phase["start_date"], "end_date": phase["end_date"]}
    items = subscription["items"]["data"]
    wanted = [(item, world.get("price", one["price"]), one["quantity"]) for item, one in zip(items, phase["items"], strict=True)]
    subscriptions.set_items(world, subscription, wanted)
    if phase is schedule["phases"][-1] and schedule["end_behavior"] == "release":
        _let_go(world, schedule)


def _let_go(world: World, schedule: Thing) -> None:
    subscription = world.get("subscription", schedule["subscription"])
    fields = {"status": "released", "released_at": world.now, "released_subscription": subscription["id"], "subscription": None}
    world.change("subscription_schedule.released", schedule, fields)
    world.change("customer.subscription.updated", subscription, {"schedule": None})


def _phase(subscription: Thing, items: list[Thing], start: int, end: int, prorated: str = "create_prorations") -> Thing:
    plain = [
        {"billing_thresholds": None, "discounts": [], "metadata": {}, "plan": item["price"]["id"], "price": item["price"]["id"],
         "quantity": item["quantity"], "tax_rates": []}
        for item in items
    ]  # fmt: skip
    return {
        "add_invoice_items": [], "application_fee_percent": None, "billing_cycle_anchor": None, "billing_thresholds": None,
        "collection_method": None, "currency": subscription["currency"], "default_payment_method": None, "default_tax_rates": [],
        "description": None, "discounts": [], "end_date": end, "invoice_settings": None, "items": plain, "metadata": {},
        "on_behalf_of": None, "proration_behavior": prorated, "start_date": start, "transfer_data": None, "trial_end": None,
    }  # fmt: skip
