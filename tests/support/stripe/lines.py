"""What an invoice's lines say: a price for a period, or the part of one that a change gives back or adds."""

import calendar
from datetime import UTC, datetime

from tests.support.stripe.world import Thing, World

_DAYS = {"day": 1, "week": 7}


def period_end(start: int, recurring: Thing, anchor: int) -> int:
    """The end of the period that begins then; months keep the anchor's day, or the month's last one."""
    count = recurring["interval_count"]
    if recurring["interval"] in _DAYS:
        return int(start + count * _DAYS[recurring["interval"]] * 86400)
    months = count * (12 if recurring["interval"] == "year" else 1)
    begun, day = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(anchor, UTC).day
    year, month = divmod(begun.year * 12 + begun.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return int(begun.replace(year=year, month=month + 1, day=min(day, last)).timestamp())


def whole(world: World, item: Thing, period: Thing, *, is_trial: bool = False) -> Thing:
    """A line for one whole period of a subscription's item; a trial costs nothing."""
    amount = 0 if is_trial else item["price"]["unit_amount"] * item["quantity"]
    name = world.get("product", item["price"]["product"])["name"]
    text = f"Trial period for {name}" if is_trial else f"{item['quantity']} × {name}"
    return _line(world, amount, item["price"], item["quantity"], {
        "period": period, "description": text, "subscription": item["subscription"], "parent": _of_item(item, is_proration=False),
    })  # fmt: skip


def prorations(world: World, item: Thing, price: Thing, quantity: int, *, period: Thing, now: int) -> list[Thing]:
    """What the rest of the period gives back of the old price, and what it costs at the new one."""
    left, length = period["end"] - now, period["end"] - period["start"]
    rest = {"start": now, "end": period["end"]}
    found = []
    for sign, one, count, word in ((-1, item["price"], item["quantity"], "Unused"), (1, price, quantity, "Remaining")):
        amount = sign * round(one["unit_amount"] * count * left / length)
        text = f"{word} time on {world.get('product', one['product'])['name']}"
        found.append(_line(world, amount, one, count, {
            "period": rest, "description": text, "subscription": item["subscription"],
            "parent": _of_item(item, is_proration=True),
        }))  # fmt: skip
    return found


def of_invoice_item(world: World, item: Thing) -> Thing:
    """A line for an amount that waited on the customer, or was asked for by name."""
    details = {"invoice_item": item["id"], "proration": item["proration"], "proration_details": None, "subscription": None}
    return _line(world, item["amount"], None, 1, {
        "period": item["period"], "description": item["description"], "currency": item["currency"],
        "parent": {"type": "invoice_item_details", "invoice_item_details": details, "subscription_item_details": None},
    })  # fmt: skip


def once(world: World, price: Thing, quantity: int) -> Thing:
    """A line for a price that is paid one time."""
    period = {"start": world.now, "end": world.now}
    return _line(world, price["unit_amount"] * quantity, price, quantity, {"period": period, "parent": None})


def _of_item(item: Thing, *, is_proration: bool) -> Thing:
    details = {
        "invoice_item": None, "proration": is_proration, "proration_details": {"credited_items": None},
        "subscription": item["subscription"], "subscription_item": item["id"],
    }  # fmt: skip
    return {"type": "subscription_item_details", "invoice_item_details": None, "subscription_item_details": details}


def _line(world: World, amount: int, price: Thing | None, quantity: int, more: Thing) -> Thing:
    details = price and {"price": price["id"], "product": price["product"]}
    pricing = price and {"type": "price_details", "price_details": details, "unit_amount_decimal": str(price["unit_amount"])}
    line: Thing = {
        "id": world.id("il"), "object": "line_item", "amount": amount, "currency": price and price["currency"],
        "description": None, "discount_amounts": [], "discountable": True, "discounts": [], "invoice": None,
        "livemode": False, "metadata": {},
        "pretax_credit_amounts": [], "pricing": pricing, "quantity": quantity, "subtotal": amount, "taxes": [], **more,
    }  # fmt: skip
    return line
