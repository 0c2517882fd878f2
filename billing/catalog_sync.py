"""Our plans as products and prices of Stripe: what differs, and the steps that bring them in step again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal, assert_never

from billing.plan_versions import PlanVersion
from billing.stripe import Stripe
from billing.stripe_objects import Price, Product

Act = Literal["create_product", "update_product", "create_price", "archive_price", "restore_price"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What Stripe should have for one version of a plan. `amount_cents` None: agreed with each customer, so a product alone."""

    code: str
    version: int
    name: str
    amount_cents: int | None
    currency: str
    is_on_offer: bool

    @property
    def product_id(self) -> str:
        return f"faregate_{self.code}"

    @property
    def lookup_key(self) -> str:
        return f"{self.code}@{self.version}"


@dataclass(frozen=True, slots=True)
class Step:
    """One change of Stripe; `target` is what exists already, by Stripe's id: of a new price the one that loses its key."""

    act: Act
    wanted: Wanted
    target: str | None = None

    @property
    def subject(self) -> str:
        return self.wanted.product_id if self.act in ("create_product", "update_product") else self.wanted.lookup_key


def wanted_of(versions: Iterable[PlanVersion], *, currency: str, now: datetime) -> list[Wanted]:
    """A plan that costs nothing is no matter of Stripe's. On offer are the newest version in effect and those to come."""
    found = []
    by_code = sorted(versions, key=lambda one: (one.plan.code, one.plan.version))
    for _, group in groupby(by_code, key=lambda one: one.plan.code):
        several = list(group)
        current = max((one.plan.version for one in several if _is_in_effect(one, now)), default=0)
        for one in several:
            if one.plan.price_cents == 0:
                continue
            offered = not _is_retired(one, now) and (one.plan.version == current or one.effective_from > now)
            found.append(Wanted(one.plan.code, one.plan.version, one.plan.name, one.plan.price_cents, currency, offered))
    return found


def steps_between(wanted: Sequence[Wanted], products: Iterable[Product], prices: Iterable[Price]) -> list[Step]:
    """In the order in which they have to be done; none when both say the same.

    A price is never changed: one with other numbers loses its key to a new one, and whoever pays it goes on paying it.
    """
    product_by_id = {one.id: one for one in products}
    price_by_key = {one.lookup_key: one for one in prices if one.lookup_key is not None}
    steps = []
    for _, group in groupby(wanted, key=lambda one: one.product_id):
        versions = list(group)
        steps += _product_steps(versions, product_by_id.get(versions[0].product_id))
    for one in wanted:
        steps += _price_steps(one, price_by_key.get(one.lookup_key))
    return sorted(steps, key=lambda step: step.act == "archive_price")


def read_catalog(stripe: Stripe, wanted: Sequence[Wanted]) -> tuple[list[Product], list[Price]]:
    """What Stripe has of ours. Raises: StripeUnavailable, StripeRefused."""
    products = stripe.products(sorted({one.product_id for one in wanted}))
    return products, [price for product in products for price in stripe.prices(product.id)]


def take(stripe: Stripe, step: Step) -> str:
    """Does it; Stripe's id of what was made or changed. Raises: StripeUnavailable, StripeRefused."""
    one = step.wanted
    match step.act:
        case "create_product":
            return stripe.create_product(one.product_id, name=one.name, metadata={"faregate_plan": one.code}).id
        case "update_product":
            return stripe.update_product(one.product_id, name=one.name, is_active=one.is_on_offer).id
        case "create_price":
            assert one.amount_cents is not None
            # The key may move on to another price; which version this one sells stays written on it.
            sells = {"faregate_plan": one.code, "faregate_version": str(one.version)}
            return stripe.create_price(
                one.lookup_key, product_id=one.product_id, amount_cents=one.amount_cents, currency=one.currency, metadata=sells,
                replaces=step.target,
            ).id  # fmt: skip
        case "archive_price" | "restore_price":
            assert step.target is not None
            return stripe.set_price_active(step.target, is_active=step.act == "restore_price").id
        case _:
            assert_never(step.act)


def _product_steps(versions: Sequence[Wanted], found: Product | None) -> list[Step]:
    """A product is named for the version on offer; without one it is archived."""
    offered = [one for one in versions if one.is_on_offer]
    speaks = offered[0] if offered else versions[-1]
    if found is None:
        return [Step("create_product", speaks)] if offered else []
    if (found.name, found.is_active) != (speaks.name, speaks.is_on_offer):
        return [Step("update_product", speaks, found.id)]
    return []


def _price_steps(wanted: Wanted, found: Price | None) -> list[Step]:
    if wanted.amount_cents is None:
        return []
    if found is None:
        return [Step("create_price", wanted)] if wanted.is_on_offer else []
    if wanted.is_on_offer and not _is_same(wanted, found):
        replaced = [Step("archive_price", wanted, found.id)] if found.is_active else []
        return [Step("create_price", wanted, found.id), *replaced]
    if found.is_active != wanted.is_on_offer:
        return [Step("restore_price" if wanted.is_on_offer else "archive_price", wanted, found.id)]
    return []


def _is_same(wanted: Wanted, found: Price) -> bool:
    return (wanted.amount_cents, wanted.currency, wanted.product_id) == (found.amount_cents, found.currency, found.product)


def _is_in_effect(one: PlanVersion, now: datetime) -> bool:
    return one.effective_from <= now and not _is_retired(one, now)


def _is_retired(one: PlanVersion, now: datetime) -> bool:
    return one.retired_at is not None and one.retired_at <= now
