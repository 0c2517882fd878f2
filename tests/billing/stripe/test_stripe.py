"""Our one file about Stripe against the stand-in: retries, outages, refusals, and wishes that make one thing."""

from collections.abc import Iterator

import pytest

from billing.stripe import Stripe, StripeRefused, StripeUnavailable, open_stripe
from billing.stripe_objects import is_live_key
from gateway.local.ports import free_port
from tests.support.stripe.running import KEY, StandInStripe


@pytest.fixture
def ours(stand_in: StandInStripe) -> Iterator[Stripe]:
    with open_stripe(KEY, address=stand_in.url) as opened:
        yield opened


def pro(ours: Stripe, key: str, *, cents: int = 80_00, replaces: str | None = None) -> str:
    made = ours.create_price(
        key, product_id="faregate_pro", amount_cents=cents, currency="usd", metadata={"faregate_plan": "pro"}, replaces=replaces
    )
    return made.id


def test_a_wish_that_is_said_twice_makes_one_thing(ours: Stripe) -> None:
    for _ in range(2):
        assert ours.create_product("faregate_pro", name="Pro", metadata={}).id == "faregate_pro"
    assert pro(ours, "pro@1") == pro(ours, "pro@1")
    assert [one.lookup_key for one in ours.prices("faregate_pro")] == ["pro@1"]


def test_a_price_that_comes_back_after_another_is_not_the_answer_of_its_first_time(ours: Stripe) -> None:
    ours.create_product("faregate_pro", name="Pro", metadata={})
    first = pro(ours, "pro@7")
    second = pro(ours, "pro@7", cents=90_00, replaces=first)
    third = pro(ours, "pro@7", replaces=second)
    assert len({first, second, third}) == 3
    assert [one.id for one in ours.prices("faregate_pro") if one.lookup_key == "pro@7"] == [third]


def test_a_lost_answer_is_asked_for_again_under_the_same_key(ours: Stripe, stand_in: StandInStripe) -> None:
    stand_in.steer("trouble", path="/v1/products", status=500, count=2, is_done=True)
    seen = len(stand_in.journal())
    ours.create_product("faregate_lost", name="Lost", metadata={})
    tries = stand_in.journal()[seen:]
    assert len(tries) == 3
    assert len({one["idempotency_key"] for one in tries}) == 1
    assert tries[0]["idempotency_key"].startswith("faregate:product:faregate_lost:")
    assert [one.name for one in ours.products(["faregate_lost", "faregate_nothing"])] == ["Lost"]


@pytest.mark.parametrize(("status", "tries"), [(429, 1), (500, 3), (503, 3)])  # the SDK leaves waiting for a rate to us
def test_an_outage_is_no_refusal(ours: Stripe, stand_in: StandInStripe, status: int, tries: int) -> None:
    stand_in.steer("trouble", path="/v1/account", status=status, count=tries)
    with pytest.raises(StripeUnavailable):
        ours.account()
    assert ours.account().id == "acct_standin"


def test_nobody_there_is_an_outage() -> None:
    with open_stripe(KEY, address=f"http://127.0.0.1:{free_port()}") as ours, pytest.raises(StripeUnavailable):
        ours.account()


def test_a_no_is_told_in_stripes_words(ours: Stripe, stand_in: StandInStripe) -> None:
    with pytest.raises(StripeRefused, match="No such product: 'faregate_nothing'"):
        ours.create_price("x@1", product_id="faregate_nothing", amount_cents=1, currency="usd", metadata={})
    with open_stripe("sk_live_wrong", address=stand_in.url) as stranger, pytest.raises(StripeRefused, match="Invalid API Key"):
        stranger.account()


def test_more_prices_than_a_page_are_all_found(ours: Stripe) -> None:
    ours.create_product("faregate_many", name="Many", metadata={})
    for number in range(101):
        ours.create_price(f"many@{number}", product_id="faregate_many", amount_cents=number, currency="usd", metadata={})
    assert len(ours.prices("faregate_many")) == 101


@pytest.mark.parametrize(
    ("key", "is_live"), [("sk_live_a", True), ("rk_live_a", True), ("sk_test_live_", False), ("rk_test_a", False)]
)
def test_money_moves_with_live_keys_alone(key: str, *, is_live: bool) -> None:
    assert is_live_key(key) is is_live
