"""Invoices: drafted, finalised, paid, voided; a credit stays on the customer."""

from tests.support.stripe import catalog, customers, lines, payments
from tests.support.stripe.faults import Fault
from tests.support.stripe.world import DAY, Thing, World, listed, metadata


def draft(world: World, customer_id: str, content: list[Thing], *, reason: str, subscription: Thing | None = None) -> Thing:
    """An invoice that can still be changed; it takes the terms of the subscription that it is for."""
    customer = world.get("customer", customer_id)
    of = subscription or {}
    details = subscription and {"metadata": dict(of["metadata"]), "subscription": of["id"]}
    period = {"start": world.now, "end": world.now}
    made = world.add(
        "in", "invoice", account_country="US", account_name="Stand-In", account_tax_ids=None, amount_due=0, amount_overpaid=0,
        amount_paid=0, amount_remaining=0, amount_shipping=0, application=None, attempt_count=0, attempted=False,
        auto_advance=True, automatic_tax={"enabled": False, "disabled_reason": None, "liability": None, "provider": None,
        "status": None}, automatically_finalizes_at=None, billing_reason=reason, currency=of.get("currency", "usd"),
        collection_method=of.get("collection_method", "charge_automatically"), custom_fields=None, customer=customer_id,
        customer_address=customer["address"], customer_email=customer["email"], customer_name=customer["name"],
        customer_phone=None, customer_shipping=None, customer_tax_exempt="none", customer_tax_ids=[], default_tax_rates=[],
        default_payment_method=None, default_source=None, description=None, discounts=list(of.get("discounts", [])),
        due_date=None, effective_at=None, ending_balance=None, footer=None, from_invoice=None, hosted_invoice_url=None,
        invoice_pdf=None, issuer={"type": "self"}, last_finalization_error=None, latest_revision=None, metadata={},
        next_payment_attempt=None, number=None, on_behalf_of=None, parent=details and {"type": "subscription_details",
        "quote_details": None, "subscription_details": details}, payment_settings={"default_mandate": None,
        "payment_method_options": None, "payment_method_types": None}, period_end=period["end"], period_start=period["start"],
        post_payment_credit_notes_amount=0, pre_payment_credit_notes_amount=0, receipt_number=None, rendering=None,
        shipping_cost=None, shipping_details=None, starting_balance=0, statement_descriptor=None, status="draft",
        status_transitions=dict.fromkeys(("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")),
        subtotal=0, subtotal_excluding_tax=0, test_clock=None, total=0, total_discount_amounts=[], total_excluding_tax=0,
        total_pretax_credit_amounts=[], total_taxes=[], webhooks_delivered_at=None, _days=of.get("days_until_due") or 30,
    )  # fmt: skip
    fill(world, made, content)
    world.emit("invoice.created", made)
    return made


def fill(world: World, invoice: Thing, content: list[Thing]) -> None:
    """Sets the lines, and with them every sum."""
    for line in content:
        line["invoice"] = invoice["id"]
    subtotal = sum(line["amount"] for line in content)
    off = catalog.taken_off(world, invoice["discounts"], subtotal)
    total = subtotal - sum(one["amount"] for one in off)
    invoice["currency"] = content[0]["currency"] if content else invoice["currency"]
    invoice.update(lines=listed(content, f"/v1/invoices/{invoice['id']}/lines"), subtotal=subtotal, total=total)
    invoice.update(total_discount_amounts=off, subtotal_excluding_tax=subtotal, total_excluding_tax=total)
    invoice.update(amount_due=max(total, 0), amount_remaining=max(total, 0))


def finalize(world: World, invoice: Thing) -> None:
    """A number, and an intent for what is due; what costs nothing is paid by it."""
    if invoice["status"] != "draft":
        raise Fault(f"This invoice is already finalized: its status is {invoice['status']}.", code="invoice_not_editable")
    customer = world.get("customer", invoice["customer"])
    due = max(0, invoice["total"] + customer["balance"])
    after = min(0, invoice["total"] + customer["balance"])
    url = f"{world.address}/i/{invoice['id']}"
    invoice.update(starting_balance=customer["balance"], ending_balance=after, amount_due=due, amount_remaining=due)
    customer["balance"] = after
    invoice["number"] = f"{customer['invoice_prefix']}-{customer['next_invoice_sequence']:04}"
    customer["next_invoice_sequence"] += 1
    invoice["status_transitions"]["finalized_at"] = world.now
    invoice.update(status="open", effective_at=world.now, hosted_invoice_url=url, invoice_pdf=f"{url}/pdf")
    if invoice["collection_method"] == "send_invoice":
        invoice["due_date"] = world.now + invoice["_days"] * DAY
        world.at(invoice["due_date"], lambda: _overdue(world, invoice))
    if due:
        _ask_for(world, invoice, due)
    world.emit("invoice.finalized", invoice)
    if not due:
        _pay_out(world, invoice, 0)


def collect(world: World, invoice: Thing, card: Thing | None, *, is_there: bool) -> bool:
    """One try to be paid; whether it is paid now."""
    if invoice["status"] == "open":
        invoice.update(attempted=True, attempt_count=invoice["attempt_count"] + 1, next_payment_attempt=None)
        intent = world.get("payment_intent", invoice["_intent"])
        payments.attempt(world, intent, card, is_there=is_there)
        if intent["status"] == "requires_action":
            world.emit("invoice.payment_action_required", invoice)
        elif intent["status"] != "succeeded":
            world.emit("invoice.payment_failed", invoice)
    return bool(invoice["status"] == "paid")


def intent_succeeded(world: World, intent: Thing) -> None:
    """An invoice is paid when its intent is, whoever paid that."""
    invoice = world.things.get(intent.get("_invoice", ""))
    if invoice is not None and invoice["status"] == "open":
        _pay_out(world, invoice, intent["amount"])


def void(world: World, invoice: Thing) -> None:
    if invoice["status"] not in ("open", "uncollectible"):
        raise Fault(f"You can only void an open invoice; this one is {invoice['status']}.", code="invoice_not_editable")
    invoice["status_transitions"]["voided_at"] = world.now
    world.change("invoice.voided", invoice, {"status": "void", "next_payment_attempt": None})
    if "_intent" in invoice:
        payments.cancel(world, world.get("payment_intent", invoice["_intent"]))
        _payment(invoice)["status"] = "canceled"


def create(world: World, params: Thing) -> Thing:
    """A one-off invoice; what waits on the customer is in it when it is asked for."""
    customer = customers.living(world, params.get("customer"), param="customer")
    waiting = []
    if params.get("pending_invoice_items_behavior") == "include":
        waiting = list(world.all("invoiceitem", customer=customer["id"], _is_waiting=True))
    made = draft(world, customer["id"], [lines.of_invoice_item(world, item) for item in waiting], reason="manual")
    for item in waiting:
        item.update(invoice=made["id"], _is_waiting=False)
    made.update({name: params[name] for name in ("collection_method", "description") if name in params})
    made.update(auto_advance=params.get("auto_advance", False), metadata=metadata({}, params.get("metadata")))
    made["_days"] = params.get("days_until_due", 30)
    if made["collection_method"] == "send_invoice" and "days_until_due" not in params:
        raise Fault("You must pass `days_until_due` with `send_invoice`.", param="days_until_due", code="parameter_missing")
    return made


def create_item(world: World, params: Thing) -> Thing:
    """An amount that waits for the customer's next invoice."""
    customer = customers.living(world, params.get("customer"), param="customer")
    made = world.add(
        "ii", "invoiceitem", amount=params.get("amount", 0), currency=params.get("currency", "usd"), customer=customer["id"],
        date=world.now, description=params.get("description"), discountable=True, discounts=[], invoice=params.get("invoice"),
        metadata=metadata({}, params.get("metadata")), net_amount=params.get("amount", 0), parent=None, pricing=None,
        period={"start": world.now, "end": world.now}, proration=False, quantity=1, quantity_decimal="1", tax_rates=[],
        test_clock=None, _is_waiting="invoice" not in params,
    )  # fmt: skip
    del made["created"]
    if "invoice" in params:
        invoice = world.get("invoice", params["invoice"], param="invoice")
        fill(world, invoice, [*invoice["lines"]["data"], lines.of_invoice_item(world, made)])
    world.emit("invoiceitem.created", made)
    return made


def pay(world: World, params: Thing, which: str) -> Thing:
    """Charges now, out of turn. Raises: Fault when the card is refused."""
    invoice = world.get("invoice", which)
    if invoice["status"] == "draft":
        finalize(world, invoice)
    if invoice["status"] != "open":
        raise Fault(f"Invoice is already {invoice['status']}", code="invoice_not_open")
    if params.get("paid_out_of_band"):
        _pay_out(world, invoice, invoice["amount_due"])
        return invoice
    chosen = params.get("payment_method")
    card = world.get("payment_method", chosen, param="payment_method") if chosen else _usual_card(world, invoice)
    if not collect(world, invoice, card, is_there=not params.get("off_session", True)):
        error = world.get("payment_intent", invoice["_intent"])["last_payment_error"] or {"message": "Authentication is needed."}
        raise Fault(error["message"], status=402, kind="card_error", code=error.get("code"))
    return invoice


def finalize_by_id(world: World, params: Thing, which: str) -> Thing:
    invoice = world.get("invoice", which)
    finalize(world, invoice)
    return invoice


def void_by_id(world: World, params: Thing, which: str) -> Thing:
    invoice = world.get("invoice", which)
    void(world, invoice)
    return invoice


def send(world: World, params: Thing, which: str) -> Thing:
    invoice = world.get("invoice", which)
    if invoice["status"] == "draft":
        finalize(world, invoice)
    world.emit("invoice.sent", invoice)
    return invoice


def _usual_card(world: World, invoice: Thing) -> Thing | None:
    of = subscription_of(invoice)
    return customers.card_of(world, invoice["customer"], world.get("subscription", of) if of else None)


def subscription_of(invoice: Thing) -> str | None:
    found: str | None = invoice["parent"] and invoice["parent"]["subscription_details"]["subscription"]
    return found


def _ask_for(world: World, invoice: Thing, due: int) -> None:
    intent = payments.intend(world, due, invoice["currency"], invoice["customer"])
    intent["_invoice"] = invoice["id"]
    invoice["_intent"] = intent["id"]
    paid_by = world.add(
        "inpay", "invoice_payment", amount_paid=None, amount_requested=due, currency=invoice["currency"], invoice=invoice["id"],
        is_default=True, payment={"type": "payment_intent", "payment_intent": intent["id"]}, status="open",
        status_transitions={"canceled_at": None, "paid_at": None},
    )  # fmt: skip
    invoice["payments"] = listed([paid_by], f"/v1/invoice_payments?invoice={invoice['id']}")
    invoice["confirmation_secret"] = {"client_secret": intent["client_secret"], "type": "payment_intent"}


def _payment(invoice: Thing) -> Thing:
    found: Thing = invoice["payments"]["data"][0]
    return found


def _pay_out(world: World, invoice: Thing, amount: int) -> None:
    invoice["status_transitions"]["paid_at"] = world.now
    if "_intent" in invoice:
        payment = _payment(invoice)
        payment.update(status="paid", amount_paid=amount)
        payment["status_transitions"]["paid_at"] = world.now
    invoice.update(status="paid", attempted=True, amount_paid=amount, amount_remaining=0, next_payment_attempt=None)
    world.emit("invoice.paid", invoice)
    world.emit("invoice.payment_succeeded", invoice)


def _overdue(world: World, invoice: Thing) -> None:
    if invoice["status"] == "open":
        world.emit("invoice.overdue", invoice)
