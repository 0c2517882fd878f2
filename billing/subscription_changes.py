"""Changes of a subscription: up at once, down and out with the period, back again; contracts by invoice, and refunds."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from billing.accounts import Account, find_account
from billing.changes import audit
from billing.checkout import CENTS_MAX, check_has_none, customer_of, price_of
from billing.plan_versions import plan_on_offer
from billing.shop import Shop
from billing.stripe_objects import ACCOUNT, PLAN, VERSION, Invoice, Price, Subscription
from billing.subscriptions import Fetched, live_subscription, refresh
from billing.tables import customers

DAYS_UNTIL_DUE_MAX = 365


class NotSubscribed(Exception):
    """The account has no subscription that could be changed."""


class WrongDirection(Exception):
    """The plan is not dearer than the one that is paid now (to upgrade), or not cheaper (to downgrade)."""


class NotNow(Exception):
    """The subscription's state does not allow it; the message says what comes first."""


class ContractWrong(Exception):
    """What a contract says can't be billed."""


class InvoiceUnknown(Exception):
    """The account has no such invoice."""


class NothingPaid(Exception):
    """Nothing of it was paid, or all of that was given back."""


@dataclass(frozen=True, slots=True)
class Changed:
    """`pay_url`: the change waits until the bill there is paid, a day at most."""

    fetched: Fetched
    pay_url: str | None = None


def upgrade(shop: Shop, account: str, plan_code: str, *, actor: str) -> Changed:
    """At once: what is left of the month is given back in the bill for the rest of it at the new price.

    Raises: AccountUnknown, PlanUnknown, NotForSale, NotSubscribed, WrongDirection, NotNow, StripeUnavailable, StripeRefused.
    """
    found, now = _current(shop, account)
    price = _next_price(shop, plan_code)
    if price.amount_cents <= now.price.amount_cents:
        raise WrongDirection(f"{plan_code!r} is not dearer than what {found.name!r} has; `downgrade` is for that.")
    if now.status != "active":
        raise NotNow(f"The subscription is {now.status}: what is open is paid first.")
    _write_down(shop, found, now, "subscription.upgrade", actor, price=price.id)
    if now.schedule:
        shop.stripe.release(now.schedule)
    shop.stripe.move(now, price.id)
    changed = refresh(shop, now.id)
    return Changed(changed, None if changed.subscription.price.id == price.id else _open_bill(shop, now.id))


def downgrade(shop: Shop, account: str, plan_code: str, *, actor: str) -> Changed:
    """With the period that is paid. Raises as `upgrade`."""
    found, now = _current(shop, account)
    price = _next_price(shop, plan_code)
    if price.amount_cents >= now.price.amount_cents:
        raise WrongDirection(f"{plan_code!r} is not cheaper than what {found.name!r} has; `upgrade` is for that.")
    if now.cancel_at is not None:
        raise NotNow("The subscription ends with its period; `reactivate` comes first.")
    _write_down(shop, found, now, "subscription.downgrade", actor, price=price.id, at=now.period_end.isoformat())
    shop.stripe.move_later(now, price.id)
    return Changed(refresh(shop, now.id))


def cancel(shop: Shop, account: str, *, actor: str, at_once: bool = False) -> Changed:
    """With the period that is paid; or at once, and nothing is given back (`refund` does that).

    Raises: AccountUnknown, NotSubscribed, StripeUnavailable, StripeRefused.
    """
    found, now = _current(shop, account, is_contract_meant=True)
    _write_down(shop, found, now, "subscription.cancel", actor, at_once=at_once)
    if now.schedule:  # while it stands, Stripe lets nobody else say when the subscription ends
        shop.stripe.release(now.schedule)
    if at_once:
        shop.stripe.cancel(now.id)
    else:
        shop.stripe.cancel_later(now.id, is_cancelled=True)
    return Changed(refresh(shop, now.id))


def reactivate(shop: Shop, account: str, *, actor: str) -> Changed:
    """Takes back a cancellation, or a downgrade, that waits for the end of the period. Raises as `cancel`, and NotNow."""
    found, now = _current(shop, account, is_contract_meant=True)
    if now.cancel_at is None and now.schedule is None:
        raise NotNow("Nothing waits for the end of the period.")
    _write_down(shop, found, now, "subscription.reactivate", actor)
    if now.schedule:
        shop.stripe.release(now.schedule)
    if now.cancel_at is not None:
        shop.stripe.cancel_later(now.id, is_cancelled=False)
    return Changed(refresh(shop, now.id))


def begin_contract(
    shop: Shop, account: str, plan_code: str, *, cents: int, currency: str, days_until_due: int, actor: str
) -> Changed:
    """A month's price of this account's own, billed by an invoice that is sent; it is in force from now on, paid or not.

    Raises: AccountUnknown, PlanUnknown, SubscribedAlready, ContractWrong, StripeUnavailable, StripeRefused.
    """
    if not 1 <= cents <= CENTS_MAX or not 1 <= days_until_due <= DAYS_UNTIL_DUE_MAX:
        raise ContractWrong(f"A contract is of 1 to {CENTS_MAX:,} cents a month, due in 1 to {DAYS_UNTIL_DUE_MAX} days.")
    with shop.engine.begin() as connection:
        found, plan = find_account(connection, account), plan_on_offer(connection, plan_code)
    customer = customer_of(shop, found)
    check_has_none(shop, customer, found.name)
    product = f"faregate_{plan.code}"
    terms = {"plan": f"{plan.code}@{plan.version}", "amount_cents": cents, "currency": currency, "days_until_due": days_until_due}
    with shop.engine.begin() as connection:
        audit(connection, "contract.begin", actor=actor, account_id=found.id, subject=str(found.id), details=terms)
    if not shop.stripe.products([product]):
        shop.stripe.create_product(product, name=plan.name, metadata={PLAN: plan.code})
    sells = {PLAN: plan.code, VERSION: str(plan.version), ACCOUNT: str(found.id)}
    price = shop.stripe.create_price(None, product_id=product, amount_cents=cents, currency=currency, metadata=sells)
    earlier = max(shop.stripe.invoices(customer), key=lambda one: one.created, default=None)
    asked = {
        "customer": customer, "items": [{"price": price.id}], "collection_method": "send_invoice",
        "days_until_due": days_until_due, "metadata": {ACCOUNT: str(found.id)},
    }  # fmt: skip
    return Changed(refresh(shop, shop.stripe.create_subscription(asked, after=earlier.id if earlier else "")))


def invoices(shop: Shop, account: str) -> list[Invoice]:
    """Newest first. Raises: AccountUnknown, StripeUnavailable, StripeRefused."""
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
        customer = connection.scalar(select(customers.c.stripe_id).where(customers.c.account_id == found.id))
    return [] if customer is None else shop.stripe.invoices(customer)


def refund(shop: Shop, account: str, invoice: str, *, cents: int | None, why: str, actor: str) -> int:
    """What was paid of an invoice, by its number or id, or a part of that; how many cents.

    Entitlements stay: `cancel` ends them. Raises: AccountUnknown, InvoiceUnknown, NothingPaid, StripeUnavailable, StripeRefused.
    """
    chosen = next((one for one in invoices(shop, account) if invoice in (one.id, one.number)), None)
    if chosen is None:
        raise InvoiceUnknown(f"{account!r} has no invoice {invoice!r}. `faregate subscriptions invoices` shows them.")
    intent = next(iter(chosen.payment_intents), None)
    left = 0 if intent is None else chosen.paid_cents - shop.stripe.refunded_cents(intent)
    if intent is None or left <= 0 or (cents is not None and not 0 < cents <= left):
        raise NothingPaid(f"Of {invoice}, {left:,} cents can be given back.")
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
        details = {"invoice": chosen.id, "cents": cents or left, "currency": chosen.currency, "why": why, "left_before": left}
        audit(connection, "invoice.refund", actor=actor, account_id=found.id, subject=chosen.id, details=details)
    return shop.stripe.refund(intent, cents=cents or left, why=why)


def _current(shop: Shop, account: str, *, is_contract_meant: bool = False) -> tuple[Account, Subscription]:
    """The account, and its subscription as it is at Stripe now."""
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
        row = live_subscription(connection, found.id)
    if row is None:
        raise NotSubscribed(f"{found.name!r} has no subscription. `faregate subscriptions checkout` sells one.")
    now = refresh(shop, row["id"]).subscription
    if now.ended_at is not None:
        raise NotSubscribed(f"The subscription of {found.name!r} has ended.")
    if now.collection_method == "send_invoice" and not is_contract_meant:
        raise NotNow("A contract has its own price: cancel it, and begin another.")
    return found, now


def _next_price(shop: Shop, plan_code: str) -> Price:
    with shop.engine.begin() as connection:
        plan = plan_on_offer(connection, plan_code)
    return price_of(shop, plan)


def _write_down(shop: Shop, account: Account, now: Subscription, action: str, actor: str, **more: Any) -> None:
    """Before Stripe is asked, so that nothing happens there which nobody signed for."""
    sold = now.price.sells
    before = {
        "plan": sold and f"{sold.code}@{sold.version}",
        "status": now.status,
        "cancel_at_period_end": now.cancel_at_period_end,
    }
    with shop.engine.begin() as connection:
        details = {"subscription": now.id, "before": before, **more}
        audit(connection, action, actor=actor, account_id=account.id, subject=now.id, details=details)


def _open_bill(shop: Shop, subscription_id: str) -> str | None:
    unpaid = shop.stripe.unpaid_invoices(subscription_id)
    return unpaid[0].url if unpaid else None
