"""Products, prices, coupons and promotion codes."""

from decimal import Decimal

from tests.support.stripe.faults import Fault
from tests.support.stripe.world import Thing, World, metadata


def create_product(world: World, params: Thing) -> Thing:
    if params.get("id") in world.things:
        raise Fault("Product already exists.", code="resource_already_exists", param="id")
    plain = {name: params.get(name) for name in ("description", "shippable", "tax_code", "unit_label", "url")}
    made = world.add(
        "prod", "product", id=params.get("id"), active=params.get("active", True), default_price=None, images=[],
        marketing_features=[], metadata=metadata({}, params.get("metadata")), name=params["name"], package_dimensions=None,
        statement_descriptor=params.get("statement_descriptor"), type="service", updated=world.now, **plain,
    )  # fmt: skip
    world.emit("product.created", made)
    return made


def update_product(world: World, params: Thing, which: str) -> Thing:
    product = world.get("product", which)
    fields = {**params}
    if "default_price" in fields:
        world.get("price", fields["default_price"], param="default_price")
    if "metadata" in fields:
        fields["metadata"] = metadata(product["metadata"], fields["metadata"])
    if any(product.get(name) != value for name, value in fields.items()):
        world.change("product.updated", product, {**fields, "updated": world.now})
    return product


def create_price(world: World, params: Thing) -> Thing:
    product = world.get("product", params.get("product"), param="product")
    amount = params.get("unit_amount")
    if amount is None:
        raise Fault("You must pass `unit_amount`.", code="parameter_missing", param="unit_amount")
    if not 0 <= amount <= 99_999_999:
        raise Fault("Invalid non-negative integer", param="unit_amount", code="parameter_invalid_integer")
    recurring = params.get("recurring")
    key = _take_lookup_key(world, params, None)
    made = world.add(
        "price", "price", active=params.get("active", True), billing_scheme="per_unit", currency=params["currency"].lower(),
        custom_unit_amount=None, lookup_key=key, metadata=metadata({}, params.get("metadata")), nickname=params.get("nickname"),
        product=product["id"], recurring=recurring and {
            "interval": recurring["interval"], "interval_count": recurring.get("interval_count", 1), "meter": None,
            "trial_period_days": None, "usage_type": "licensed",
        }, tax_behavior=params.get("tax_behavior", "unspecified"), tiers_mode=None, transform_quantity=None,
        type="recurring" if recurring else "one_time", unit_amount=amount, unit_amount_decimal=str(amount),
    )  # fmt: skip
    world.emit("price.created", made)
    return made


def update_price(world: World, params: Thing, which: str) -> Thing:
    price = world.get("price", which)
    fields: Thing = {name: params[name] for name in ("active", "nickname", "tax_behavior") if name in params}
    if "lookup_key" in params:
        fields["lookup_key"] = _take_lookup_key(world, params, price)
    if "metadata" in params:
        fields["metadata"] = metadata(price["metadata"], params["metadata"])
    world.change("price.updated", price, fields)
    return price


def _take_lookup_key(world: World, params: Thing, owner: Thing | None) -> str | None:
    """A key is one active price's; `transfer_lookup_key` moves it."""
    key: str | None = params.get("lookup_key") or None
    for other in world.all("price") if key else ():
        if other["lookup_key"] == key and other is not owner:
            if not params.get("transfer_lookup_key"):
                raise Fault(f"A price (`{other['id']}`) already uses that lookup key.", param="lookup_key")
            world.change("price.updated", other, {"lookup_key": None})
    return key


def create_coupon(world: World, params: Thing) -> Thing:
    if ("percent_off" in params) == ("amount_off" in params):
        raise Fault("Pass either `percent_off` or `amount_off`.")
    made = world.add(
        "coupon", "coupon", id=params.get("id"), amount_off=params.get("amount_off"), currency=params.get("currency"),
        duration=params.get("duration", "once"), duration_in_months=params.get("duration_in_months"),
        max_redemptions=params.get("max_redemptions"), metadata=metadata({}, params.get("metadata")), name=params.get("name"),
        percent_off=params.get("percent_off"), redeem_by=params.get("redeem_by"), times_redeemed=0, valid=True,
    )  # fmt: skip
    world.emit("coupon.created", made)
    return made


def create_promotion_code(world: World, params: Thing) -> Thing:
    promotion = params["promotion"]
    coupon = world.get("coupon", promotion.get("coupon"), param="promotion[coupon]")
    code = params.get("code") or world.id("c")[2:10].upper()
    if any(other["active"] and other["code"].lower() == code.lower() for other in world.all("promotion_code")):
        raise Fault("An active promotion code with this `code` already exists.", param="code")
    made = world.add(
        "promo", "promotion_code", active=params.get("active", True), code=code, customer=params.get("customer"),
        expires_at=params.get("expires_at"), max_redemptions=params.get("max_redemptions"), times_redeemed=0,
        metadata=metadata({}, params.get("metadata")), promotion={"type": "coupon", "coupon": coupon["id"]},
        restrictions={"first_time_transaction": False, "minimum_amount": None, "minimum_amount_currency": None},
    )  # fmt: skip
    world.emit("promotion_code.created", made)
    return made


def redeem(world: World, given: list[Thing], owner: Thing) -> list[str]:
    """Discounts of `discounts=[{coupon}|{promotion_code}]`, as ids. Raises: Fault."""
    made = []
    for one in given:
        code = one.get("promotion_code")
        promotion = world.get("promotion_code", code, param="discounts") if code else None
        which = promotion["promotion"]["coupon"] if promotion else one.get("coupon")
        coupon = world.get("coupon", which, param="discounts")
        for limited in (coupon, promotion):
            if limited is not None and _is_used_up(world, limited):
                raise Fault("This coupon is expired.", code="coupon_expired", param="discounts")
        for counted in (coupon, promotion):
            if counted is not None:
                counted["times_redeemed"] += 1
        discount = world.add(
            "di", "discount", checkout_session=None, customer=owner["customer"], end=None, invoice=None, invoice_item=None,
            promotion_code=code, source={"type": "coupon", "coupon": coupon["id"]}, start=world.now, subscription=owner["id"],
            subscription_item=None, _used=0,
        )  # fmt: skip
        del discount["created"], discount["livemode"]
        made.append(discount["id"])
    return made


def taken_off(world: World, discount_ids: list[str], amount: int) -> list[Thing]:
    """What each discount takes from an invoice of that amount; one of a single invoice is then used up."""
    found = []
    for discount in (world.get("discount", which) for which in discount_ids):
        coupon = world.get("coupon", discount["source"]["coupon"])
        limit = {"once": 1, "repeating": coupon["duration_in_months"], "forever": None}[coupon["duration"]]
        if amount <= 0 or (limit is not None and discount["_used"] >= limit):
            continue
        part = coupon["amount_off"] or int((Decimal(amount) * Decimal(str(coupon["percent_off"])) / 100).quantize(Decimal(1)))
        discount["_used"] += 1
        found.append({"amount": min(part, amount), "discount": discount["id"]})
        amount -= found[-1]["amount"]
    return found


def _is_used_up(world: World, limited: Thing) -> bool:
    is_spent = limited["max_redemptions"] is not None and limited["times_redeemed"] >= limited["max_redemptions"]
    ends = limited.get("redeem_by") or limited.get("expires_at")
    return is_spent or not limited.get("active", True) or (ends is not None and ends <= world.now)
