"""The customer portal: configurations, sessions, and what its buttons do."""

from tests.support.stripe import cards, customers, life, schedules, subscriptions
from tests.support.stripe.faults import Fault
from tests.support.stripe.world import Thing, World, metadata


def create_configuration(world: World, params: Thing) -> Thing:
    given = params["features"]
    update = given.get("subscription_update", {"enabled": False})
    for product in update.get("products") or []:
        world.get("product", product["product"], param="features[subscription_update][products]")
    conditions = update.get("schedule_at_period_end", {}).get("conditions", [])
    features = {
        "customer_update": {"allowed_updates": [], "enabled": False, **given.get("customer_update", {})},
        "invoice_history": {"enabled": False, **given.get("invoice_history", {})},
        "payment_method_update": {"enabled": False, **given.get("payment_method_update", {})},
        "subscription_cancel": {"cancellation_reason": {"enabled": False, "options": []}, "enabled": False,
                                "mode": "at_period_end", "proration_behavior": "none", **given.get("subscription_cancel", {})},
        "subscription_pause": {"duration": "indefinite", "enabled": False},
        "subscription_update": {"default_allowed_updates": [], "proration_behavior": "none", "trial_update_behavior": "end_trial",
                                "products": [], **update, "schedule_at_period_end": {"conditions": conditions}},
    }  # fmt: skip
    profile = {
        "headline": None,
        "privacy_policy_url": None,
        "terms_of_service_url": None,
        **(params.get("business_profile") or {}),
    }
    return world.add(
        "bpc", "billing_portal.configuration", active=True, application=None, business_profile=profile,
        default_return_url=params.get("default_return_url"), features=features, is_default=False,
        login_page={"enabled": False, "url": None}, metadata=metadata({}, params.get("metadata")), updated=world.now,
    )  # fmt: skip


def create_session(world: World, params: Thing) -> Thing:
    customer = customers.living(world, params.get("customer"), param="customer")
    chosen = params.get("configuration")
    if chosen is None:
        found = next(world.all("billing_portal.configuration"), None)
        if found is None:
            raise Fault("No configuration provided and your test mode default configuration has not been created.")
        chosen = found["id"]
    world.get("billing_portal.configuration", chosen, param="configuration")
    made = world.add(
        "bps", "billing_portal.session", configuration=chosen, customer=customer["id"], flow=params.get("flow_data"), locale=None,
        on_behalf_of=None, return_url=params.get("return_url"),
    )  # fmt: skip
    made["url"] = f"{world.address}/p/session/{made['id']}"
    return made


def subscription_of(world: World, session: Thing) -> Thing | None:
    """The one that the portal shows."""
    living = [one for one in world.all("subscription", customer=session["customer"]) if one["status"] not in life.ENDED]
    return living[-1] if living else None


def prices_on_offer(world: World, session: Thing) -> list[Thing]:
    update = _features(world, session)["subscription_update"]
    if not update["enabled"]:
        return []
    return [world.get("price", which) for product in update["products"] or [] for which in product["prices"]]


def change_price(world: World, session: Thing, price_id: str) -> None:
    """A lower price waits for the end of the period where the configuration says so. Raises: Fault."""
    subscription = subscription_of(world, session)
    update = _features(world, session)["subscription_update"]
    if subscription is None or price_id not in [price["id"] for price in prices_on_offer(world, session)]:
        raise Fault("This plan is not on offer.")
    price, item = world.get("price", price_id), subscription["items"]["data"][0]
    waits = {"type": "decreasing_item_amount"} in update["schedule_at_period_end"]["conditions"]
    if price["unit_amount"] < item["price"]["unit_amount"] and waits:
        _schedule(world, subscription, item, price_id)
        return
    subscriptions.update(world, {
        "items": [{"id": item["id"], "price": price_id}], "proration_behavior": update["proration_behavior"],
        "payment_behavior": "pending_if_incomplete",
    }, subscription["id"])  # fmt: skip
    if subscription["pending_update"] is not None:
        raise cards.declined()


def set_cancelled(world: World, session: Thing, *, is_cancelled: bool) -> None:
    subscription = subscription_of(world, session)
    if subscription is None or not _features(world, session)["subscription_cancel"]["enabled"]:
        raise Fault("There is nothing to cancel here.")
    if subscription["schedule"]:
        schedules.release(world, {}, subscription["schedule"])
    subscriptions.update(world, {"cancel_at_period_end": is_cancelled}, subscription["id"])


def change_card(world: World, session: Thing, number: str) -> None:
    """The new card pays from now on. Raises: Fault when it is refused."""
    subscription = subscription_of(world, session)
    card = cards.attach(world, {"customer": session["customer"]}, cards.from_number(world, number)["id"])
    customers.update(world, {"invoice_settings": {"default_payment_method": card["id"]}}, session["customer"])
    if subscription is not None:
        subscriptions.update(world, {"default_payment_method": card["id"]}, subscription["id"])


def _schedule(world: World, subscription: Thing, item: Thing, price_id: str) -> None:
    if subscription["schedule"]:
        schedules.release(world, {}, subscription["schedule"])
    schedule = schedules.create(world, {"from_subscription": subscription["id"]})
    now = {
        "items": [{"price": item["price"]["id"], "quantity": item["quantity"]}],
        "end_date": life.period_of(subscription)["end"],
    }
    then = {"items": [{"price": price_id, "quantity": item["quantity"]}]}
    schedules.update(world, {"phases": [now, then], "end_behavior": "release"}, schedule["id"])


def _features(world: World, session: Thing) -> Thing:
    found: Thing = world.get("billing_portal.configuration", session["configuration"])["features"]
    return found
