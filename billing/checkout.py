"""Buying: a plan or a pack on Stripe's hosted page, and the customer's own page there."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from billing.accounts import Account, find_account
from billing.catalog_sync import wanted_of
from billing.changes import audit
from billing.plan_versions import list_plans, plan_on_offer
from billing.plans import Plan
from billing.shop import Shop
from billing.stripe_objects import ACCOUNT, FARES, KIND, PACK, PLAN, Price, Sold
from billing.subscriptions import LIVE, refresh
from billing.tables import customers

PACK_PRODUCT = "faregate_pack"
# What one purchase may be of; more is a contract.
FARES_MAX = 10_000_000
CENTS_MAX = 99_999_999
# What a page is for, beside what Stripe needs to know: the same words are the same page.
_PRICE, _CODE, _CENTS = "faregate_price", "faregate_code", "faregate_cents"


class NotForSale(Exception):
    """The plan costs nothing, has a price of each customer's own, or is not at Stripe yet."""


class SubscribedAlready(Exception):
    """An account has one subscription at a time; another plan is a change of it."""


class CodeUnknown(Exception):
    """No promotion code is spelled so."""


class PackWrong(Exception):
    """A pack is of 1 fare or more, and costs something."""


def buy_plan(shop: Shop, account: str, plan_code: str, *, actor: str, code: str | None = None) -> str:
    """The address of a page that sells a month of the plan, and the next. Asked for again it is the same, until it is used.

    The trial is none of Stripe's: whoever subscribes pays from now on. Raises: AccountUnknown, PlanUnknown, NotForSale,
    SubscribedAlready, CodeUnknown, StripeUnavailable, StripeRefused.
    """
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
        plan = plan_on_offer(connection, plan_code)
    price = price_of(shop, plan)
    discount: dict[str, Any] = {"allow_promotion_codes": True}
    if code:
        discount = {"discounts": [{"promotion_code": _promotion(shop, code)}]}
    customer = customer_of(shop, found)
    check_has_none(shop, customer, found.name)
    written = {ACCOUNT: str(found.id), PLAN: plan.code, _PRICE: price.id, **({_CODE: code} if code else {})}
    asked = {
        "mode": "subscription", "customer": customer, "line_items": [{"price": price.id, "quantity": 1}],
        "subscription_data": {"metadata": {ACCOUNT: str(found.id)}}, **discount,
    }  # fmt: skip
    return _open(shop, found, asked, written, actor=actor)


def buy_pack(shop: Shop, account: str, fares: int, *, cents: int, currency: str, actor: str) -> str:
    """The address of a page that sells fares beyond the day's quota, once.

    Raises: AccountUnknown, PackWrong, StripeUnavailable, StripeRefused.
    """
    if not 1 <= fares <= FARES_MAX or not 1 <= cents <= CENTS_MAX:
        raise PackWrong(f"A pack is 1 to {FARES_MAX:,} fares and costs 1 to {CENTS_MAX:,} cents.")
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
    if not shop.stripe.products([PACK_PRODUCT]):
        shop.stripe.create_product(PACK_PRODUCT, name="Requests beyond the quota", metadata={KIND: PACK})
    of = {ACCOUNT: str(found.id), KIND: PACK, FARES: str(fares)}
    price = {"currency": currency, "unit_amount": cents, "product": PACK_PRODUCT}
    asked = {
        "mode": "payment", "customer": customer_of(shop, found), "line_items": [{"price_data": price, "quantity": 1}],
        "payment_intent_data": {"metadata": of, "description": f"{fares:,} requests"},
    }  # fmt: skip
    return _open(shop, found, asked, {**of, _CENTS: f"{cents} {currency}"}, actor=actor)


def portal(shop: Shop, account: str, *, currency: str, actor: str) -> str:
    """The address of the customer's own page: card, invoices, change of plan, cancellation.

    Raises: AccountUnknown, StripeUnavailable, StripeRefused.
    """
    with shop.engine.begin() as connection:
        found = find_account(connection, account)
        wanted = wanted_of(list_plans(connection), currency=currency, now=shop.now())
        audit(connection, "portal.open", actor=actor, account_id=found.id, subject=str(found.id), details={})
    offered = {Sold(one.code, one.version) for one in wanted if one.is_on_offer and one.amount_cents is not None}
    products = sorted({one.product_id for one in wanted if Sold(one.code, one.version) in offered})
    prices = [price for product in products for price in shop.stripe.prices(product)]
    features = _features([price for price in prices if price.is_active and price.sells in offered])
    return shop.stripe.portal(customer_of(shop, found), features=features, return_url=shop.return_url)


def customer_of(shop: Shop, account: Account) -> str:
    """Stripe's id of who is billed for the account; made where there is none yet, once."""
    mine = customers.c
    with shop.engine.begin() as connection:
        known: str | None = connection.scalar(select(mine.stripe_id).where(mine.account_id == account.id))
    if known is not None:
        return known
    made = shop.stripe.create_customer(str(account.id), name=account.name, email=account.email)
    while not shop.stripe.has_customer(made):  # the answer to an earlier wish for one, who was deleted since
        made = shop.stripe.create_customer(str(account.id), name=account.name, email=account.email, after=made)
    with shop.engine.begin() as connection:
        connection.execute(insert(customers).values(account_id=account.id, stripe_id=made).on_conflict_do_nothing())
        kept: str = connection.execute(select(mine.stripe_id).where(mine.account_id == account.id)).scalar_one()
        return kept


def price_of(shop: Shop, plan: Plan) -> Price:
    """What the version on offer is sold at. Raises: NotForSale."""
    if not plan.price_cents:
        raise NotForSale(f"The plan {plan.code!r} is not bought: it is free, or its price is agreed with each customer.")
    sold = Sold(plan.code, plan.version)
    for price in shop.stripe.prices(f"faregate_{plan.code}"):
        if price.is_active and price.sells == sold and price.lookup_key is not None:
            return price
    raise NotForSale(f"Stripe has no price for {plan.code}@{plan.version} yet. Run `faregate stripe sync`.")


def check_has_none(shop: Shop, customer: str, name: str) -> None:
    """Asked of Stripe, as the record may not know yet of what was bought a moment ago. Raises: SubscribedAlready."""
    living = [one for one in shop.stripe.subscriptions(customer) if one.status in LIVE]
    for one in living:
        refresh(shop, one.id)
    if living:
        raise SubscribedAlready(f"{name!r} has a subscription already: change that one, or cancel it first.")


def _promotion(shop: Shop, code: str) -> str:
    found = shop.stripe.promotion(code)
    if found is None:
        raise CodeUnknown(f"There is no promotion code {code!r}.")
    return found


def _open(shop: Shop, account: Account, asked: dict[str, Any], written: Mapping[str, str], *, actor: str) -> str:
    """One page of a kind is open at a time: two clicks are one page, and a change of mind ends the other.

    Two purchases in the same instant can still both be begun at Stripe; the later one is given back (`purchases.end_doubles`).
    """
    latest = shop.stripe.sessions(asked["customer"])
    for one in latest:
        if one.url is not None and one.status == "open" and one.mode == asked["mode"]:
            if dict(one.metadata) == dict(written):
                return one.url
            shop.stripe.expire_session(one.id)
    with shop.engine.begin() as connection:
        action = "checkout.open_pack" if asked["mode"] == "payment" else "checkout.open_plan"
        audit(connection, action, actor=actor, account_id=account.id, subject=str(account.id), details=written)
    back = {"success_url": shop.return_url, "cancel_url": shop.return_url}
    wish = {**asked, **back, "metadata": dict(written), "client_reference_id": str(account.id)}
    made = shop.stripe.open_session(wish, after=latest[0].id if latest else "")
    assert made.url is not None
    return made.url


def _features(prices: Sequence[Price]) -> dict[str, Any]:
    """As the commands do it: what is dearer at once and paid now, what is cheaper, or nothing more, with the period's end."""
    by_product: dict[str, list[str]] = {}
    for price in prices:
        by_product.setdefault(price.product, []).append(price.id)
    update: dict[str, Any] = {
        "enabled": True,
        "default_allowed_updates": ["price", "promotion_code"],
        "proration_behavior": "always_invoice",
        "products": [{"product": product, "prices": sorted(ids)} for product, ids in sorted(by_product.items())],
        "schedule_at_period_end": {"conditions": [{"type": "decreasing_item_amount"}]},
    }
    return {
        "invoice_history": {"enabled": True},
        "payment_method_update": {"enabled": True},
        "subscription_cancel": {"enabled": True, "mode": "at_period_end"},
        "subscription_update": update if by_product else {"enabled": False},
    }
