"""Cards with the behaviour of Stripe's test cards, attached to customers as payment methods."""

import hashlib
from typing import Any

from tests.support.stripe.faults import Fault
from tests.support.stripe.world import Thing, World

# What a card does: pays, is refused at once, asks for authentication while its owner is there, or is refused later only.
OK, DECLINED, AUTHENTICATE, LATER = "ok", "declined", "authenticate", "later"
BEHAVIOURS = (OK, DECLINED, AUTHENTICATE, LATER)
# token, number, behaviour
_CARDS = (
    ("pm_card_visa", "4242424242424242", OK),
    ("pm_card_mastercard", "5555555555554444", OK),
    ("pm_card_visa_chargeDeclined", "4000000000000002", DECLINED),
    ("pm_card_authenticationRequired", "4000002500003155", AUTHENTICATE),
    ("pm_card_chargeCustomerFail", "4000000000000341", LATER),
)
_BY_TOKEN = {token: (number, behaviour) for token, number, behaviour in _CARDS}
_BY_NUMBER = {number: behaviour for _, number, behaviour in _CARDS}


def from_number(world: World, number: str) -> Thing:
    """A payment method as a hosted page makes it. Raises: Fault for a number that no test card has."""
    digits = number.replace(" ", "")
    if digits not in _BY_NUMBER:
        raise Fault("Your card number is incorrect.", status=402, kind="card_error", code="incorrect_number", param="number")
    brand = "mastercard" if digits.startswith("5") else "visa"
    card = {
        "brand": brand, "checks": {"address_line1_check": None, "address_postal_code_check": None, "cvc_check": "pass"},
        "country": "US", "display_brand": brand, "exp_month": 12, "exp_year": 2040, "funding": "credit", "generated_from": None,
        "fingerprint": hashlib.sha256(digits.encode()).hexdigest()[:16], "last4": digits[-4:],
        "networks": {"available": [brand], "preferred": None}, "regulated_status": "unregulated",
        "three_d_secure_usage": {"supported": True}, "wallet": None,
    }  # fmt: skip
    address = dict.fromkeys(("city", "country", "line1", "line2", "postal_code", "state"))
    return world.add(
        "pm", "payment_method", type="card", card=card, customer=None, metadata={}, allow_redisplay="unspecified",
        billing_details={"address": address, "email": None, "name": None, "phone": None, "tax_id": None},
        _behaviour=_BY_NUMBER[digits], _authenticated=False,
    )  # fmt: skip


def method(world: World, which: str, param: str = "payment_method") -> Thing:
    """A payment method by its id, or a new one by the name of a test card. Raises: Fault."""
    if which in _BY_TOKEN:
        return from_number(world, _BY_TOKEN[which][0])
    return world.get("payment_method", which, param=param)


def usable(world: World, which: str) -> Thing:
    """A card that its bank does not refuse when it is only shown. Raises: Fault."""
    card = method(world, which)
    if card["_behaviour"] == DECLINED:
        raise declined()
    return card


def attach(world: World, params: Thing, which: str) -> Thing:
    customer = world.get("customer", params.get("customer"), param="customer")
    card = usable(world, which)
    world.change("payment_method.attached", card, {"customer": customer["id"]})
    return card


def detach(world: World, params: Thing, which: str) -> Thing:
    card = world.get("payment_method", which)
    owner = card["customer"]
    world.change("payment_method.detached", card, {"customer": None})
    for customer in world.all("customer", id=owner):
        if customer["invoice_settings"]["default_payment_method"] == which:
            customer["invoice_settings"]["default_payment_method"] = None
    return card


def misbehave(world: World, customer: str, behaviour: str) -> None:
    """From now on every card of the customer behaves so."""
    if behaviour not in BEHAVIOURS:
        raise Fault(f"A card's behaviour is one of {', '.join(BEHAVIOURS)}.")
    for card in world.all("payment_method", customer=customer):
        card["_behaviour"] = behaviour


def declined(**more: Any) -> Fault:
    return Fault(
        "Your card was declined.", status=402, kind="card_error", code="card_declined", decline_code="generic_decline", **more
    )
