"""What customers and admins do to a shop in months of life; each may find it closed, refused, or dead in the middle."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from billing.accounts import create_account
from billing.checkout import CodeUnknown, NotForSale, SubscribedAlready, buy_pack, buy_plan, portal
from billing.stripe import StripeRefused, StripeUnavailable
from billing.stripe_objects import ACCOUNT
from billing.subscription_changes import (
    NothingPaid,
    NotNow,
    NotSubscribed,
    WrongDirection,
    begin_contract,
    cancel,
    downgrade,
    invoices,
    reactivate,
    refund,
    upgrade,
)
from tests.simulation.life_world import Killed, Life
from tests.support.stripe import cards, checkout, payments
from tests.support.stripe.faults import Fault
from tests.support.stripe.portal import change_price, prices_on_offer, set_cancelled
from tests.support.stripe.world import Thing

GOOD, DECLINED, LATER = "4242424242424242", "4000000000000002", "4000000000000341"
REFUSALS = (
    CodeUnknown, NotForSale, NotNow, NotSubscribed, NothingPaid, SubscribedAlready, StripeRefused, StripeUnavailable,
    WrongDirection,
)  # fmt: skip


class People:
    def __init__(self, life: Life, count: int) -> None:
        self._life, self._shop = life, life.shop
        self.accounts: dict[str, UUID] = {}
        for number in range(count):
            name = f"a{number}"
            with life.calm.engine.begin() as connection:
                account = create_account(connection, name=name, email=f"{name}@x.test", plan_code="free", actor="life")
            self.accounts[name] = account.id
        self._deeds: tuple[tuple[int, Callable[[str], object]], ...] = (
            (30, self._buys),
            (8, self._buys_twice_at_once),
            (8, self._buys_a_pack),
            (8, lambda name: upgrade(self._shop, name, "premium", actor="life")),
            (8, lambda name: downgrade(self._shop, name, "pro", actor="life")),
            (8, lambda name: cancel(self._shop, name, actor="life")),
            (2, lambda name: cancel(self._shop, name, actor="life", at_once=True)),
            (8, lambda name: reactivate(self._shop, name, actor="life")),
            (6, self._uses_the_portal),
            (8, self._has_a_bad_card),
            (8, self._has_a_good_card_again),
            (3, self._pays_a_bill),
            (2, self._is_given_back_a_bill),
            (6, self._is_given_back_a_pack),
            (2, self._signs_a_contract),
        )

    def act(self, name: str) -> str:
        """One deed; what became of it."""
        deed = self._life.chance.choices([deed for _, deed in self._deeds], [weight for weight, _ in self._deeds])[0]
        try:
            deed(name)
        except Killed:
            return "killed"
        except (*REFUSALS, Fault) as refusal:
            return type(refusal).__name__
        return "done"

    def _buys(self, name: str) -> None:
        """Looks at the page, and mostly pays; now or, with the page still open, later."""
        url = buy_plan(self._shop, name, self._life.chance.choice(("pro", "premium")), actor="life")
        if self._life.chance.random() < 0.8:
            self._pays(url)

    def _buys_twice_at_once(self, name: str) -> None:
        """A second page that a race left open: both are paid."""
        url = buy_plan(self._shop, name, "pro", actor="life")
        session = self._session(url)
        prices = [price["id"] for price in self._life.find("price", active=True) if price["recurring"]]
        second = checkout.create(self._life.world, {
            "mode": "subscription", "customer": session["customer"], "success_url": "http://x.test/",
            "line_items": [{"price": self._life.chance.choice(prices), "quantity": 1}],
            "subscription_data": {"metadata": {ACCOUNT: str(self.accounts[name])}},
        })  # fmt: skip
        self._pays(url)
        self._pays(second["url"])

    def _buys_a_pack(self, name: str) -> None:
        fares = self._life.chance.choice((1000, 10_000))
        self._pays(buy_pack(self._shop, name, fares, cents=fares // 2, currency="usd", actor="life"))

    def _uses_the_portal(self, name: str) -> None:
        portal(self._shop, name, currency="usd", actor="life")
        session = self._life.find("billing_portal.session")[-1]
        if self._life.chance.random() < 0.3:
            set_cancelled(self._life.world, session, is_cancelled=self._life.chance.random() < 0.6)
        else:
            offered = prices_on_offer(self._life.world, session)
            change_price(self._life.world, session, self._life.chance.choice(offered)["id"])

    def _has_a_bad_card(self, name: str) -> None:
        for customer in self._customers(name):
            cards.misbehave(self._life.world, customer, cards.DECLINED)

    def _has_a_good_card_again(self, name: str) -> None:
        for customer in self._customers(name):
            cards.misbehave(self._life.world, customer, cards.OK)

    def _pays_a_bill(self, name: str) -> None:
        for customer in self._customers(name):
            for invoice in self._life.find("invoice", customer=customer, status="open"):
                checkout.pay_invoice(self._life.world, invoice, GOOD)

    def _is_given_back_a_bill(self, name: str) -> None:
        paid = [one for one in invoices(self._shop, name) if one.payment_intents]
        if paid:
            refund(self._shop, name, paid[0].id, cents=None, why="life", actor="life")

    def _is_given_back_a_pack(self, name: str) -> None:
        """Somebody's, by hand, at Stripe: all of it, or a part."""
        paid = [one["payment_intent"] for one in self._life.find("checkout.session", mode="payment") if one["payment_intent"]]
        if paid:
            part = {"amount": 1} if self._life.chance.random() < 0.3 else {}
            payments.refund(self._life.world, {"payment_intent": self._life.chance.choice(paid), **part})

    def _signs_a_contract(self, name: str) -> None:
        terms: Any = {"cents": 5_000_00, "currency": "usd", "days_until_due": 14}
        begin_contract(self._shop, name, "enterprise", **terms, actor="life")

    def _pays(self, url: str) -> None:
        number = self._life.chance.choices((GOOD, LATER, DECLINED), (80, 12, 8))[0]
        checkout.submit(self._life.world, self._session(url), email="a@x.test", number=number)

    def _session(self, url: str) -> Thing:
        return self._life.world.get("checkout.session", url.rpartition("/")[2])

    def _customers(self, name: str) -> list[str]:
        """Several where an answer was lost for longer than Stripe keeps answers."""
        mine = str(self.accounts[name])
        return [one["id"] for one in self._life.find("customer") if one["metadata"].get(ACCOUNT) == mine]
