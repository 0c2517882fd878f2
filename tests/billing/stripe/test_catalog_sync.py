"""What differs between our plans and Stripe's catalogue, as steps: decided without Stripe."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from billing.catalog_sync import Step, Wanted, steps_between, wanted_of
from billing.plan_versions import PlanVersion
from billing.plans import DEFAULT_PLANS, Plan
from billing.stripe_objects import Price, Product

NOW = datetime(2026, 12, 1, tzinfo=UTC)
FREE, PRO, PREMIUM, ENTERPRISE = DEFAULT_PLANS


def version(
    plan: Plan = PRO, number: int = 1, cents: int | None = 80_00, *, starts: int = -30, ends: int | None = None
) -> PlanVersion:
    """Days from now."""
    retired = None if ends is None else NOW + timedelta(days=ends)
    return PlanVersion(replace(plan, version=number, price_cents=cents), NOW + timedelta(days=starts), retired)


def offered(*versions: PlanVersion) -> list[str]:
    return [one.lookup_key for one in wanted_of(versions, currency="usd", now=NOW) if one.is_on_offer]


def acts(steps: list[Step]) -> list[tuple[str, str]]:
    return [(step.act, step.subject) for step in steps]


def wanted(number: int = 1, cents: int | None = 80_00, *, is_on_offer: bool = True, name: str = "Pro") -> Wanted:
    return Wanted("pro", number, name, cents, "usd", is_on_offer)


def price(number: int = 1, cents: int = 80_00, *, is_active: bool = True, currency: str = "usd") -> Price:
    return Price(f"price_{number}", f"pro@{number}", "faregate_pro", cents, currency, is_active)


PRODUCT = Product("faregate_pro", "Pro", is_active=True)


def test_the_four_plans_are_two_prices_and_three_products() -> None:
    plans = [version(FREE, cents=0), version(PRO), version(PREMIUM, cents=350_00), version(ENTERPRISE, cents=None)]
    steps = steps_between(wanted_of(plans, currency="usd", now=NOW), [], [])
    assert acts(steps) == [
        ("create_product", "faregate_enterprise"), ("create_product", "faregate_premium"), ("create_product", "faregate_pro"),
        ("create_price", "premium@1"), ("create_price", "pro@1"),
    ]  # fmt: skip


def test_on_offer_are_the_newest_in_effect_and_those_to_come() -> None:
    assert offered(version(), version(number=2), version(number=3, starts=5)) == ["pro@2", "pro@3"]
    assert offered(version(), version(number=2, ends=-1)) == ["pro@1"]
    assert offered(version(ends=-1)) == []
    assert offered(version(ends=1)) == ["pro@1"]


def test_nothing_is_done_when_both_say_the_same() -> None:
    assert steps_between([wanted()], [PRODUCT], [price()]) == []


def test_a_new_version_is_a_new_price_before_the_old_one_is_archived() -> None:
    steps = steps_between([wanted(is_on_offer=False), wanted(2, 90_00)], [PRODUCT], [price()])
    assert acts(steps) == [("create_price", "pro@2"), ("archive_price", "pro@1")]
    assert steps[1].target == "price_1"


def test_other_numbers_under_a_key_are_a_new_price_and_the_old_one_is_archived() -> None:
    for found in (price(cents=70_00), price(currency="eur")):
        steps = steps_between([wanted()], [PRODUCT], [found])
        assert acts(steps) == [("create_price", "pro@1"), ("archive_price", "pro@1")]
        assert [step.target for step in steps] == ["price_1", "price_1"]


def test_a_version_that_was_never_sold_and_is_not_on_offer_is_not_made() -> None:
    assert steps_between([wanted(is_on_offer=False)], [], []) == []


def test_a_price_that_somebody_archived_is_restored() -> None:
    assert acts(steps_between([wanted()], [PRODUCT], [price(is_active=False)])) == [("restore_price", "pro@1")]


def test_a_product_follows_the_name_on_offer_and_goes_with_its_last_version() -> None:
    renamed = steps_between([wanted(name="Professional")], [PRODUCT], [price()])
    assert acts(renamed) == [("update_product", "faregate_pro")]
    gone = steps_between([wanted(is_on_offer=False)], [PRODUCT], [price()])
    assert acts(gone) == [("update_product", "faregate_pro"), ("archive_price", "pro@1")]


def test_prices_that_are_not_ours_are_left_alone() -> None:
    others = [replace(price(), lookup_key=None, id="price_x"), replace(price(), lookup_key="gold@1", id="price_y")]
    assert steps_between([wanted()], [PRODUCT], [price(), *others]) == []
