"""What time and payments do to a subscription: renewals, tries and retries, trials that end, ends."""

from tests.support.stripe import customers, invoices, lines
from tests.support.stripe.world import DAY, HOUR, Thing, World

ENDED = ("canceled", "incomplete_expired")
_UPDATED = "customer.subscription.updated"


def period_of(subscription: Thing) -> Thing:
    item = subscription["items"]["data"][0]
    return {"start": item["current_period_start"], "end": item["current_period_end"]}


def keep(world: World, subscription: Thing) -> None:
    """Sets the alarm for the end of the period that it is in."""
    ends = period_of(subscription)["end"]
    if subscription["status"] == "trialing" and ends - 3 * DAY >= world.now:
        world.at(ends - 3 * DAY, lambda: _warn(world, subscription, ends))
    world.at(ends, lambda: _turn(world, subscription, ends))


def end(world: World, subscription: Thing) -> None:
    subscription.update(status="canceled", ended_at=world.now, canceled_at=subscription["canceled_at"] or world.now)
    subscription["pending_update"] = None
    world.emit("customer.subscription.deleted", subscription)


def end_if_due(world: World, subscription: Thing) -> None:
    at = subscription["cancel_at"]
    if subscription["status"] not in ENDED and at is not None and at <= world.now:
        end(world, subscription)


def give_up(world: World, subscription: Thing) -> None:
    """A first invoice that nobody paid within 23 hours."""
    if subscription["status"] == "incomplete":
        invoices.void(world, world.get("invoice", subscription["latest_invoice"]))
        world.change(_UPDATED, subscription, {"status": "incomplete_expired", "ended_at": world.now})


def drop_pending(world: World, subscription: Thing, invoice: Thing) -> None:
    """A change that nobody paid for within 23 hours."""
    pending = subscription["pending_update"]
    if pending is not None and pending["_invoice"] == invoice["id"]:
        subscription["pending_update"] = None
        invoices.void(world, invoice)
        world.emit("customer.subscription.pending_update_expired", subscription)


def end_trial(world: World, subscription: Thing) -> None:
    """The first real period, or what the settings say of a trial without a card."""
    what = subscription["trial_settings"]["end_behavior"]["missing_payment_method"]
    has_card = customers.card_of(world, subscription["customer"], subscription) is not None
    if not has_card and what == "cancel":
        end(world, subscription)
    elif not has_card and what == "pause":
        world.change(_UPDATED, subscription, {"status": "paused", "trial_end": world.now})
        world.emit("customer.subscription.paused", subscription)
    else:
        subscription["trial_end"] = world.now
        renew(world, subscription, is_there=False)


def renew(world: World, subscription: Thing, *, is_there: bool) -> None:
    """The next period and its invoice, which is charged an hour later, or at once where its owner is there."""
    was = subscription["status"]
    start = world.now if was in ("trialing", "paused") else period_of(subscription)["end"]
    if was in ("trialing", "paused"):
        subscription["billing_cycle_anchor"] = start
    items = subscription["items"]["data"]
    ends = lines.period_end(start, items[0]["price"]["recurring"], subscription["billing_cycle_anchor"])
    before = [{**item} for item in items]
    for item in items:
        item.update(current_period_start=start, current_period_end=ends)
    content = [lines.whole(world, item, {"start": start, "end": ends}) for item in items] + subscription.pop("_waiting", [])
    invoice = invoices.draft(world, subscription["customer"], content, reason="subscription_cycle", subscription=subscription)
    subscription.update(latest_invoice=invoice["id"], status="active" if was in ("trialing", "paused") else was)
    world.emit(
        _UPDATED,
        subscription,
        {"items": {"object": "list", "data": before}} | ({} if was == subscription["status"] else {"status": was}),
    )
    keep(world, subscription)
    if is_there:
        _bill(world, subscription, invoice)
    elif was != "unpaid" and subscription["pause_collection"] is None:
        world.at(world.now + HOUR, lambda: _bill(world, subscription, invoice))


def invoice_paid(world: World, invoice: Thing) -> None:
    """The subscription is active when the invoice that held it up is paid; a change that waited for it happens."""
    which = invoices.subscription_of(invoice)
    if which is None:
        return
    subscription = world.get("subscription", which)
    pending = subscription["pending_update"]
    if pending is not None and pending["_invoice"] == invoice["id"]:
        subscription["pending_update"] = None
        for item, shown in zip(subscription["items"]["data"], pending["subscription_items"], strict=True):
            item.update(price=shown["price"], plan=shown["plan"], quantity=shown["quantity"])
        world.emit("customer.subscription.pending_update_applied", subscription)
        world.emit(_UPDATED, subscription, {"pending_update": {"expires_at": pending["expires_at"]}})
    if subscription["status"] in ("incomplete", "past_due", "unpaid") and subscription["latest_invoice"] == invoice["id"]:
        world.get("customer", subscription["customer"])["delinquent"] = False
        world.change(_UPDATED, subscription, {"status": "active"})


def invoice_overdue(world: World, invoice: Thing) -> None:
    which = invoices.subscription_of(invoice)
    if which is not None and world.get("subscription", which)["status"] == "active":
        world.change(_UPDATED, world.get("subscription", which), {"status": "past_due"})


def _warn(world: World, subscription: Thing, ends: int) -> None:
    if subscription["status"] == "trialing" and period_of(subscription)["end"] == ends:
        world.emit("customer.subscription.trial_will_end", subscription)


def _turn(world: World, subscription: Thing, ends: int) -> None:
    if subscription["status"] in (*ENDED, "incomplete", "paused") or period_of(subscription)["end"] != ends:
        return
    if subscription["cancel_at_period_end"]:
        end(world, subscription)
    elif subscription["status"] == "trialing":
        end_trial(world, subscription)
    else:
        renew(world, subscription, is_there=False)


def _bill(world: World, subscription: Thing, invoice: Thing) -> None:
    if invoice["status"] != "draft" or subscription["status"] in ENDED:
        return
    invoices.finalize(world, invoice)
    if invoice["collection_method"] == "charge_automatically":
        _try(world, subscription, invoice, 0)


def _try(world: World, subscription: Thing, invoice: Thing, failures: int) -> None:
    """One try of a renewal, and the plan for the next; after the last one, what the settings say."""
    if invoice["status"] != "open" or subscription["status"] in ENDED:
        return
    is_last = failures >= len(world.retry_days)
    card = customers.card_of(world, subscription["customer"], subscription)
    if invoices.collect(world, invoice, card, is_there=False):
        return
    world.get("customer", subscription["customer"])["delinquent"] = True
    if not is_last:
        again = world.now + world.retry_days[failures] * DAY
        world.change("invoice.updated", invoice, {"next_payment_attempt": again})
        world.at(again, lambda: _try(world, subscription, invoice, failures + 1))
    elif world.after_retries == "canceled":
        subscription["cancellation_details"] = {"comment": None, "feedback": None, "reason": "payment_failed"}
        end(world, subscription)
        return
    status = world.after_retries if is_last else "past_due"
    world.change(_UPDATED, subscription, {"status": status})
