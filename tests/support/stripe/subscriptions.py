"""Subscriptions as they are asked for: begun, changed, cancelled, resumed. What time does to them is in `life`."""

from tests.support.stripe import cards, catalog, customers, invoices, life, lines
from tests.support.stripe.faults import Fault, not_stood_in
from tests.support.stripe.world import DAY, HOUR, Thing, World, listed, metadata

_UNPAID_HOURS = 23  # a first payment, or one for a change, that nobody makes is given up then


def create(world: World, params: Thing) -> Thing:
    customer = customers.living(world, params.get("customer"), param="customer")
    prices = [_recurring(world, item) for item in params.get("items", [])]
    if not prices:
        raise Fault("Missing required param: items.", param="items", code="parameter_missing")
    _check_card_beforehand(world, params, customer)
    made = _blank(world, params, customer["id"])
    trial_end = _trial_end(world, params)
    made.update(currency=prices[0][0]["currency"], trial_start=world.now if trial_end else None, trial_end=trial_end)
    ends = trial_end or lines.period_end(world.now, prices[0][0]["recurring"], world.now)
    items = [_item(world, made, price, quantity, (world.now, ends)) for price, quantity in prices]
    made["items"] = listed(items, f"/v1/subscription_items?subscription={made['id']}")
    made["billing_cycle_anchor"] = trial_end or world.now
    made["discounts"] = catalog.redeem(world, params.get("discounts") or [], made)
    is_billed_later = trial_end or made["collection_method"] == "send_invoice"
    made["status"] = "trialing" if trial_end else "active" if is_billed_later else "incomplete"
    customer["currency"] = made["currency"]
    world.emit("customer.subscription.created", made)
    _bill_first(world, made, params, is_trial=bool(trial_end))
    life.keep(world, made)
    return made


def update(world: World, params: Thing, which: str) -> Thing:
    subscription = living(world, which)
    fields: Thing = {name: params[name] for name in ("default_payment_method", "description", "days_until_due") if name in params}
    if "metadata" in params:
        fields["metadata"] = metadata(subscription["metadata"], params["metadata"])
    if "pause_collection" in params:
        fields["pause_collection"] = {"resumes_at": None, **params["pause_collection"]} if params["pause_collection"] else None
    if "discounts" in params:
        fields["discounts"] = catalog.redeem(world, params["discounts"] or [], subscription)
    if params.get("collection_method"):
        fields["collection_method"] = params["collection_method"]
    if params.get("trial_end") == "now" and subscription["status"] == "trialing":
        life.end_trial(world, subscription)
    fields |= _ending(world, subscription, params)
    world.change("customer.subscription.updated", subscription, fields)
    if "items" in params:
        _change_items(world, subscription, params)
    return subscription


def cancel(world: World, params: Thing, which: str) -> Thing:
    """At once. What is left of the period is given back only when `prorate` says so."""
    subscription = living(world, which)
    if params.get("prorate"):
        period = life.period_of(subscription)
        for item in subscription["items"]["data"]:
            credit = lines.prorations(world, item, item["price"], item["quantity"], period=period, now=world.now)[0]
            world.get("customer", subscription["customer"])["balance"] += credit["amount"]
    subscription["cancellation_details"] = {"comment": None, "feedback": None, "reason": "cancellation_requested"}
    life.end(world, subscription)
    return subscription


def resume(world: World, params: Thing, which: str) -> Thing:
    subscription = living(world, which)
    if subscription["status"] != "paused":
        raise Fault(f"This subscription can't be resumed: its status is {subscription['status']}.")
    life.renew(world, subscription, is_there=True)
    return subscription


def living(world: World, which: str, param: str = "id") -> Thing:
    """Raises: Fault for one that has ended, as the API does for most of what could be asked of it."""
    subscription = world.get("subscription", which, param=param)
    if subscription["status"] in life.ENDED:
        raise Fault(f"A canceled subscription can only update its cancellation_details and metadata: '{which}'", param=param)
    return subscription


def set_items(world: World, subscription: Thing, wanted: list[tuple[Thing, Thing, int]]) -> None:
    """Puts prices and quantities on items, and tells of it."""
    before = {"items": {"object": "list", "data": [{**item} for item in subscription["items"]["data"]]}}
    for item, price, quantity in wanted:
        item.update(price=price, plan=plan_of(price), quantity=quantity)
    world.emit("customer.subscription.updated", subscription, before)


def plan_of(price: Thing) -> Thing:
    """The older object that an item still carries beside its price."""
    recurring = price["recurring"]
    return {
        "id": price["id"], "object": "plan", "active": price["active"], "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"], "billing_scheme": "per_unit", "created": price["created"],
        "currency": price["currency"], "interval": recurring["interval"], "interval_count": recurring["interval_count"],
        "livemode": False, "metadata": price["metadata"], "meter": None, "nickname": price["nickname"],
        "product": price["product"], "tiers_mode": None, "transform_usage": None, "trial_period_days": None,
        "usage_type": "licensed",
    }  # fmt: skip


def _recurring(world: World, given: Thing) -> tuple[Thing, int]:
    if "price" not in given:
        raise not_stood_in("items without a price")
    price = world.get("price", given["price"], param="items[0][price]")
    if not price["active"]:
        raise Fault(f"The price specified is inactive: {price['id']}.", param="items[0][price]")
    if price["recurring"] is None:
        raise Fault("The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.")
    return price, given.get("quantity", 1)


def _check_card_beforehand(world: World, params: Thing, customer: Thing) -> None:
    """`error_if_incomplete` begins nothing that could not be paid."""
    if params.get("payment_behavior") == "error_if_incomplete":
        card = customers.card_of(world, customer["id"], params)
        if card is None or card["_behaviour"] != cards.OK:
            raise cards.declined()


def _trial_end(world: World, params: Thing) -> int | None:
    if "trial_period_days" in params:
        return int(world.now + params["trial_period_days"] * DAY)
    end = params.get("trial_end")
    return None if end in (None, "now") else int(end)


def _blank(world: World, params: Thing, customer: str) -> Thing:
    method = params.get("collection_method", "charge_automatically")
    if method == "send_invoice" and "days_until_due" not in params:
        raise Fault("You must pass `days_until_due` with `send_invoice`.", param="days_until_due", code="parameter_missing")
    trial_settings = params.get("trial_settings", {"end_behavior": {"missing_payment_method": "create_invoice"}})
    return world.add(
        "sub", "subscription", application=None, application_fee_percent=None, automatic_tax={"enabled": False,
        "disabled_reason": None, "liability": None}, billing_cycle_anchor_config=None, billing_mode={"type": "flexible",
        "flexible": {"proration_discounts": "included"}}, billing_schedules=[], billing_thresholds=None,
        cancel_at=params.get("cancel_at"), cancel_at_period_end=params.get("cancel_at_period_end", False), canceled_at=None,
        cancellation_details={"comment": None, "feedback": None, "reason": None}, collection_method=method, customer=customer,
        days_until_due=params.get("days_until_due"), default_payment_method=params.get("default_payment_method"),
        default_source=None, default_tax_rates=[], description=params.get("description"), discounts=[], ended_at=None,
        invoice_settings={"account_tax_ids": None, "issuer": {"type": "self"}}, latest_invoice=None,
        metadata=metadata({}, params.get("metadata")), next_pending_invoice_item_invoice=None, on_behalf_of=None,
        pause_collection=None, payment_settings={"payment_method_options": None, "payment_method_types": None,
        "save_default_payment_method": "off"}, pending_invoice_item_interval=None, pending_setup_intent=None,
        pending_update=None, schedule=None, start_date=world.now, status="incomplete", test_clock=None, transfer_data=None,
        trial_settings=trial_settings,
    )  # fmt: skip


def _item(world: World, subscription: Thing, price: Thing, quantity: int, period: tuple[int, int]) -> Thing:
    made = world.add(
        "si", "subscription_item", billing_thresholds=None, current_period_start=period[0], current_period_end=period[1],
        discounts=[], metadata={}, plan=plan_of(price), price=price, quantity=quantity, subscription=subscription["id"],
        tax_rates=[],
    )  # fmt: skip
    del made["livemode"]
    return made


def _bill_first(world: World, made: Thing, params: Thing, *, is_trial: bool) -> None:
    content = [lines.whole(world, item, life.period_of(made), is_trial=is_trial) for item in made["items"]["data"]]
    invoice = invoices.draft(world, made["customer"], content, reason="subscription_create", subscription=made)
    made["latest_invoice"] = invoice["id"]
    invoices.finalize(world, invoice)
    if made["status"] == "incomplete" and invoice["status"] == "open":
        if params.get("payment_behavior") != "default_incomplete":
            card = customers.card_of(world, made["customer"], made)
            invoices.collect(world, invoice, card, is_there=not params.get("off_session", False))
        world.at(world.now + _UNPAID_HOURS * HOUR, lambda: life.give_up(world, made))


def _ending(world: World, subscription: Thing, params: Thing) -> Thing:
    """What `cancel_at_period_end` and `cancel_at` change; taking them back is reactivation."""
    if "cancel_at_period_end" not in params and "cancel_at" not in params:
        return {}
    if subscription["schedule"]:
        raise Fault(
            f"The subscription is managed by the subscription schedule `{subscription['schedule']}`, and updating any "
            "cancelation behavior directly is not allowed. Please update the schedule instead."
        )
    at = params.get("cancel_at") or None
    if params.get("cancel_at_period_end"):
        at = life.period_of(subscription)["end"]
    elif isinstance(at, int):
        world.at(at, lambda: life.end_if_due(world, subscription))
    reason = "cancellation_requested" if at else None
    details = {"comment": None, "feedback": None, "reason": reason}
    return {
        "cancel_at_period_end": bool(params.get("cancel_at_period_end")), "cancel_at": at,
        "canceled_at": world.now if at else None, "cancellation_details": details,
    }  # fmt: skip


def _change_items(world: World, subscription: Thing, params: Thing) -> None:
    wanted = _wanted(world, subscription, params["items"])
    period, how = life.period_of(subscription), params.get("proration_behavior", "create_prorations")
    content = [
        line for item, price, quantity in wanted
        for line in lines.prorations(world, item, price, quantity, period=period, now=world.now)
    ]  # fmt: skip
    if how == "none" or subscription["status"] == "trialing":
        set_items(world, subscription, wanted)
    elif how == "create_prorations":
        subscription.setdefault("_waiting", []).extend(content)
        set_items(world, subscription, wanted)
    else:
        _invoice_change(
            world, subscription, wanted, content, is_pending=params.get("payment_behavior") == "pending_if_incomplete"
        )


def _wanted(world: World, subscription: Thing, given: list[Thing]) -> list[tuple[Thing, Thing, int]]:
    found = []
    for one in given:
        if "id" not in one or one.get("deleted"):
            raise not_stood_in("adding and removing items of a subscription")
        item = world.get("subscription_item", one["id"], param="items[0][id]")
        if item["subscription"] != subscription["id"]:
            raise Fault(f"Item {item['id']} is not one of {subscription['id']}.", param="items[0][id]")
        price, quantity = _recurring(world, {"price": item["price"]["id"], "quantity": item["quantity"], **one})
        if price["recurring"] != item["price"]["recurring"]:
            raise not_stood_in("a change of a subscription's interval")
        found.append((item, price, quantity))
    return found


def _invoice_change(
    world: World, subscription: Thing, wanted: list[tuple[Thing, Thing, int]], content: list[Thing], *, is_pending: bool
) -> None:
    """Billed at once. With `pending_if_incomplete` the change waits until its invoice is paid."""
    if not is_pending:
        set_items(world, subscription, wanted)
    invoice = invoices.draft(world, subscription["customer"], content, reason="subscription_update", subscription=subscription)
    invoices.finalize(world, invoice)
    card = customers.card_of(world, subscription["customer"], subscription)
    is_paid = invoices.collect(world, invoice, card, is_there=True)
    if is_paid or not is_pending:
        if is_pending:
            set_items(world, subscription, wanted)
        world.change("customer.subscription.updated", subscription, {"latest_invoice": invoice["id"]})
        return
    expires = world.now + _UNPAID_HOURS * HOUR
    shown = [{**item, "price": price, "plan": plan_of(price), "quantity": quantity} for item, price, quantity in wanted]
    pending = {
        "billing_cycle_anchor": None, "expires_at": expires, "subscription_items": shown, "trial_end": None,
        "trial_from_plan": None, "_invoice": invoice["id"], "_wanted": wanted,
    }  # fmt: skip
    fields = {"pending_update": pending, "latest_invoice": invoice["id"]}
    world.change("customer.subscription.updated", subscription, fields)
    world.at(expires, lambda: life.drop_pending(world, subscription, invoice))
