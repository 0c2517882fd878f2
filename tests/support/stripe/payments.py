"""Payment intents, their charges, and refunds."""

from tests.support.stripe import cards
from tests.support.stripe.faults import Fault
from tests.support.stripe.world import Thing, World


def intend(world: World, amount: int, currency: str, customer: str | None) -> Thing:
    """An intent that nothing was tried on yet."""
    return world.add(
        "pi", "payment_intent", amount=amount, amount_capturable=0, amount_received=0, capture_method="automatic",
        confirmation_method="automatic", currency=currency, customer=customer, status="requires_payment_method",
        payment_method=None, payment_method_types=["card"], latest_charge=None, last_payment_error=None, next_action=None,
        client_secret=world.id("secret"), metadata={}, description=None, canceled_at=None, cancellation_reason=None,
        setup_future_usage=None, receipt_email=None,
    )  # fmt: skip


def attempt(world: World, intent: Thing, card: Thing | None, *, is_there: bool) -> None:
    """One try. `is_there`: the card's owner can answer a question; without them a card that was never asked is refused."""
    if card is None:
        _refuse(world, intent, None, Fault("There is no card to charge.", status=402, kind="card_error", code="missing_card"))
        return
    behaviour = card["_behaviour"]
    if behaviour == cards.AUTHENTICATE and not card["_authenticated"]:
        if is_there:
            url = f"{world.address}/authenticate/{intent['id']}"
            action = {"type": "redirect_to_url", "redirect_to_url": {"return_url": None, "url": url}}
            fields = {"status": "requires_action", "next_action": action, "payment_method": card["id"]}
            world.change("payment_intent.requires_action", intent, fields)
            return
        behaviour = cards.DECLINED
    if behaviour in (cards.DECLINED, cards.LATER):
        _refuse(world, intent, card, cards.declined())
        return
    _succeed(world, intent, card)


def authenticate(world: World, intent: Thing, *, agreed: bool) -> None:
    """The owner's answer to the question that a card asked."""
    if intent["status"] != "requires_action":
        return
    card = world.get("payment_method", intent["payment_method"])
    if not agreed:
        fault = Fault(
            "We are unable to authenticate your payment method.", status=402, kind="card_error",
            code="payment_intent_authentication_failure",
        )  # fmt: skip
        _refuse(world, intent, card, fault)
        return
    card["_authenticated"] = True
    _succeed(world, intent, card)


def cancel(world: World, intent: Thing) -> None:
    if intent["status"] not in ("succeeded", "canceled"):
        world.change("payment_intent.canceled", intent, {"status": "canceled", "canceled_at": world.now, "next_action": None})


def refund(world: World, params: Thing) -> Thing:
    charge = _charge_of(world, params)
    left = charge["amount"] - charge["amount_refunded"]
    amount = params.get("amount", left)
    if left == 0:
        raise Fault(f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
    if not 0 < amount <= left:
        raise Fault(f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})", param="amount")
    made = world.add(
        "re", "refund", amount=amount, balance_transaction=None, charge=charge["id"], currency=charge["currency"],
        status="succeeded", metadata=params.get("metadata", {}), payment_intent=charge["payment_intent"],
        reason=params.get("reason"), receipt_number=None, source_transfer_reversal=None, transfer_reversal=None,
    )  # fmt: skip
    del made["livemode"]
    world.emit("refund.created", made)
    total = charge["amount_refunded"] + amount
    world.change("charge.refunded", charge, {"amount_refunded": total, "refunded": total == charge["amount"]})
    return made


def _charge_of(world: World, params: Thing) -> Thing:
    if "charge" in params:
        return world.get("charge", params["charge"], param="charge")
    intent = world.get("payment_intent", params.get("payment_intent"), param="payment_intent")
    if intent["status"] != "succeeded":
        raise Fault(f"PaymentIntent {intent['id']} does not have a successful charge to refund.", param="payment_intent")
    return world.get("charge", intent["latest_charge"])


def _succeed(world: World, intent: Thing, card: Thing) -> None:
    charge = _charge(world, intent, card, None)
    intent.update(latest_charge=charge["id"], payment_method=card["id"], last_payment_error=None, next_action=None)
    intent.update(status="succeeded", amount_received=intent["amount"])
    world.emit("charge.succeeded", charge)
    world.emit("payment_intent.succeeded", intent)


def _refuse(world: World, intent: Thing, card: Thing | None, fault: Fault) -> None:
    intent.update(status="requires_payment_method", next_action=None, payment_method=None)
    if card is not None:
        charge = _charge(world, intent, card, fault)
        intent["latest_charge"] = charge["id"]
        world.emit("charge.failed", charge)
    intent["last_payment_error"] = dict(fault.error)
    world.emit("payment_intent.payment_failed", intent)


def _charge(world: World, intent: Thing, card: Thing, fault: Fault | None) -> Thing:
    is_paid = fault is None
    failure = {} if fault is None else fault.error
    return world.add(
        "ch", "charge", amount=intent["amount"], amount_captured=intent["amount"] if is_paid else 0, amount_refunded=0,
        balance_transaction=None, billing_details=card["billing_details"], captured=is_paid, currency=intent["currency"],
        customer=intent["customer"], description=intent["description"], disputed=False, failure_code=failure.get("code"),
        failure_message=failure.get("message"), metadata={}, paid=is_paid, payment_intent=intent["id"],
        payment_method=card["id"], payment_method_details={"type": "card", "card": {
            name: card["card"][name] for name in ("brand", "last4", "fingerprint", "country", "exp_month", "exp_year", "funding")
        }}, receipt_url=None, refunded=False, status="succeeded" if is_paid else "failed",
    )  # fmt: skip
