"""Checkout sessions: opened, completed on their hosted page, expired."""

from tests.support.stripe import cards, catalog, customers, invoices, lines, payments, subscriptions
from tests.support.stripe.faults import Fault, not_stood_in
from tests.support.stripe.world import DAY, HOUR, Thing, World, metadata


def create(world: World, params: Thing) -> Thing:
    if params.get("mode") not in ("subscription", "payment"):
        raise not_stood_in(f"sessions of mode {params.get('mode')}")
    if params.get("customer"):
        customers.living(world, params["customer"], param="customer")
    if not params.get("success_url"):
        raise Fault("You must pass `success_url`.", param="success_url", code="parameter_missing")
    wanted = [_wanted(world, params["mode"], item) for item in params.get("line_items", [])]
    if not wanted:
        raise Fault("You must pass `line_items`.", param="line_items", code="parameter_missing")
    expires = params.get("expires_at", world.now + DAY)
    if not world.now + HOUR // 2 <= expires <= world.now + DAY:
        raise Fault("The `expires_at` must be 30 minutes to 24 hours from now.", param="expires_at")
    total = sum(price["unit_amount"] * quantity for price, quantity in wanted)
    plain = {
        name: params.get(name)
        for name in ("cancel_url", "client_reference_id", "customer", "customer_email", "locale", "success_url")
    }
    made = world.add(
        "cs_test", "checkout.session", adaptive_pricing=None, after_expiration=None, amount_subtotal=total, amount_total=total,
        allow_promotion_codes=params.get("allow_promotion_codes"), automatic_tax={"enabled": False, "liability": None,
        "provider": None, "status": None}, billing_address_collection=None, client_secret=None, collected_information=None,
        consent=None, consent_collection=None, currency=wanted[0][0]["currency"], currency_conversion=None,
        custom_fields=[], customer_creation=None, custom_text=dict.fromkeys(("after_submit", "shipping_address", "submit",
        "terms_of_service_acceptance")), customer_details=None, discounts=None, expires_at=expires, invoice=None,
        invoice_creation=None, metadata=metadata({}, params.get("metadata")), mode=params["mode"], payment_intent=None,
        payment_link=None, payment_method_collection="always", payment_method_options={}, payment_method_types=["card"],
        payment_status="unpaid", recovered_from=None, saved_payment_method_options=None, setup_intent=None, shipping_cost=None,
        shipping_address_collection=None, shipping_options=[], status="open", submit_type=None, subscription=None,
        total_details={"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0}, ui_mode="hosted_page", **plain,
        _wanted=wanted, _discounts=params.get("discounts") or [], _subscription=params.get("subscription_data", {}),
        _payment=params.get("payment_intent_data", {}),
    )  # fmt: skip
    made["url"] = f"{world.address}/c/pay/{made['id']}"
    world.at(expires, lambda: _expire(world, made))
    return made


def expire(world: World, params: Thing, which: str) -> Thing:
    session = world.get("checkout.session", which)
    if session["status"] != "open":
        raise Fault(f"Only sessions with status `open` can be expired; this one is {session['status']}.")
    _expire(world, session)
    return session


def line_items(world: World, session: Thing) -> list[Thing]:
    return [
        {"id": world.id("li"), "object": "item", "amount_discount": 0, "amount_subtotal": price["unit_amount"] * quantity,
         "amount_tax": 0, "amount_total": price["unit_amount"] * quantity, "currency": price["currency"], "price": price,
         "description": world.get("product", price["product"])["name"], "quantity": quantity, "metadata": {}}
        for price, quantity in session["_wanted"]
    ]  # fmt: skip


def submit(world: World, session: Thing, *, email: str, number: str, code: str = "") -> str:
    """What the page's button does: the address to go on to. Raises: Fault, which the page shows; nothing has begun then."""
    if session["status"] != "open":
        raise Fault("This session is over.")
    discounts = _discounts(world, session, code)
    card = cards.from_number(world, number)
    if card["_behaviour"] in (cards.DECLINED, cards.LATER):
        raise cards.declined()
    session.update(_card=card["id"], _email=email, _discounts=discounts)
    if card["_behaviour"] == cards.AUTHENTICATE:
        return f"{world.address}/c/pay/{session['id']}/authenticate"
    return complete(world, session)


def complete(world: World, session: Thing) -> str:
    """Customer, card, and the subscription or payment; the address that the buyer is sent back to."""
    if session["status"] != "open":
        raise Fault("This session is over.")
    card = world.get("payment_method", session["_card"])
    card["_authenticated"] = True
    customer = _customer(world, session)
    world.change("payment_method.attached", card, {"customer": customer["id"]})
    details = dict.fromkeys(("address", "business_name", "individual_name", "name", "phone", "tax_exempt"))
    session.update(customer=customer["id"], customer_details={**details, "email": session["_email"], "tax_ids": []})
    if session["mode"] == "subscription":
        _subscribe(world, session, card)
    else:
        _charge(world, session, card)
    session.update(status="complete", payment_status="paid", url=None)
    world.emit("checkout.session.completed", session)
    return str(session["success_url"]).replace("{CHECKOUT_SESSION_ID}", session["id"])


def _wanted(world: World, mode: str, item: Thing) -> tuple[Thing, int]:
    inline = item.get("price_data")
    if inline is not None and ("recurring" in inline or "product" not in inline):
        raise not_stood_in("prices in a line that recur, or that make their own product")
    price = catalog.create_price(world, inline) if inline else world.get("price", item.get("price"), param="line_items[0][price]")
    if not price["active"]:
        raise Fault(f"The price specified is inactive: {price['id']}.", param="line_items[0][price]")
    if (mode == "subscription") != (price["recurring"] is not None):
        raise Fault(f"A session of mode `{mode}` can't be for a price of type `{price['type']}`.", param="line_items")
    return price, item.get("quantity", 1)


def _discounts(world: World, session: Thing, code: str) -> list[Thing]:
    if not code or not session["allow_promotion_codes"]:
        found: list[Thing] = session["_discounts"]
        return found
    for promotion in world.all("promotion_code", active=True):
        if promotion["code"].lower() == code.strip().lower():
            return [{"promotion_code": promotion["id"]}]
    raise Fault("This code is invalid.", param="promotion_code")


def _customer(world: World, session: Thing) -> Thing:
    if session["customer"]:
        return customers.living(world, session["customer"])
    return customers.create(world, {"email": session["_email"]})


def _subscribe(world: World, session: Thing, card: Thing) -> None:
    data = session["_subscription"]
    params = {
        name: data[name]
        for name in ("metadata", "description", "trial_period_days", "trial_end", "trial_settings")
        if name in data
    }
    made = subscriptions.create(world, {
        **params, "customer": session["customer"], "default_payment_method": card["id"], "discounts": session["_discounts"],
        "items": [{"price": price["id"], "quantity": quantity} for price, quantity in session["_wanted"]],
    })  # fmt: skip
    invoice = world.get("invoice", made["latest_invoice"])
    session.update(subscription=made["id"], invoice=invoice["id"], amount_total=invoice["total"])
    session["total_details"]["amount_discount"] = invoice["subtotal"] - invoice["total"]


def _charge(world: World, session: Thing, card: Thing) -> None:
    content = [lines.once(world, price, quantity) for price, quantity in session["_wanted"]]
    amount = sum(line["amount"] for line in content)
    owner = {"customer": session["customer"], "id": None}
    off = catalog.taken_off(world, catalog.redeem(world, session["_discounts"], owner), amount)
    amount -= sum(one["amount"] for one in off)
    session.update(amount_total=amount)
    session["total_details"]["amount_discount"] = session["amount_subtotal"] - amount
    if amount == 0:
        return
    intent = payments.intend(world, amount, session["currency"], session["customer"])
    intent["metadata"] = metadata({}, session["_payment"].get("metadata"))
    intent["description"] = session["_payment"].get("description")
    session["payment_intent"] = intent["id"]
    payments.attempt(world, intent, card, is_there=True)


def _expire(world: World, session: Thing) -> None:
    if session["status"] == "open":
        session.update(status="expired", url=None)
        world.emit("checkout.session.expired", session)


def pay_invoice(world: World, invoice: Thing, number: str) -> None:
    """The hosted page of an invoice that was sent. Raises: Fault."""
    card = cards.from_number(world, number)
    if invoice["status"] != "open":
        raise Fault(f"This invoice is {invoice['status']}.")
    card["customer"] = invoice["customer"]
    if not invoices.collect(world, invoice, card, is_there=True):
        raise cards.declined()
