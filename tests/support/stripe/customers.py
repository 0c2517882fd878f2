"""Customers, and which card of theirs is charged."""

from tests.support.stripe import cards
from tests.support.stripe.faults import missing
from tests.support.stripe.world import Thing, World, metadata


def create(world: World, params: Thing) -> Thing:
    card = cards.usable(world, params["payment_method"]) if "payment_method" in params else None
    settings = {"custom_fields": None, "default_payment_method": None, "footer": None, "rendering_options": None}
    plain = {name: params.get(name) for name in ("address", "description", "email", "name", "phone", "shipping")}
    made = world.add(
        "cus", "customer", balance=params.get("balance", 0), currency=None, default_source=None, delinquent=False, discount=None,
        invoice_prefix=world.id("x")[2:10].upper(), invoice_settings=settings, metadata=metadata({}, params.get("metadata")),
        next_invoice_sequence=1, preferred_locales=[], tax_exempt="none", test_clock=None, **plain,
    )  # fmt: skip
    world.emit("customer.created", made)
    if card is not None:
        cards.attach(world, {"customer": made["id"]}, card["id"])
    _choose_default(world, made, params)
    return made


def update(world: World, params: Thing, which: str) -> Thing:
    customer = living(world, which)
    fields = {name: value for name, value in params.items() if name not in ("metadata", "invoice_settings")}
    if "metadata" in params:
        fields["metadata"] = metadata(customer["metadata"], params["metadata"])
    _choose_default(world, customer, params)
    world.change("customer.updated", customer, fields)
    return customer


def delete(world: World, params: Thing, which: str) -> Thing:
    customer = living(world, which)
    customer["_deleted"] = True
    world.emit("customer.deleted", customer)
    return {"id": which, "object": "customer", "deleted": True}


def living(world: World, which: str | None, param: str = "id") -> Thing:
    """Raises: Fault, also for one that was deleted."""
    customer = world.get("customer", which, param=param)
    if customer.get("_deleted"):
        raise missing("customer", str(which), param)
    return customer


def card_of(world: World, customer_id: str, subscription: Thing | None = None) -> Thing | None:
    """The subscription's card, else the customer's default one."""
    customer = world.get("customer", customer_id)
    chosen = (subscription or {}).get("default_payment_method") or customer["invoice_settings"]["default_payment_method"]
    card = world.things.get(chosen) if chosen else None
    return card if card is not None and card["customer"] == customer_id else None


def _choose_default(world: World, customer: Thing, params: Thing) -> None:
    chosen = params.get("invoice_settings", {}).get("default_payment_method")
    if chosen:
        card = world.get("payment_method", chosen, param="invoice_settings[default_payment_method]")
        if card["customer"] != customer["id"]:
            raise missing("payment_method", chosen, "invoice_settings[default_payment_method]")
        customer["invoice_settings"] = {**customer["invoice_settings"], "default_payment_method": chosen}
