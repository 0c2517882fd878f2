"""Savings: the three examples of docs/savings.md, worked out by hand, and both directions of each comparison."""

from dataclasses import replace
from datetime import date

import pytest

from billing.plans import DEFAULT_PLANS
from billing.provider_names import PROVIDER_NAMES
from billing.savings import Compared, Imagined, MoreThanTheQuota, TokenPrice, compare, what_if
from billing.token_prices import token_prices
from billing.traffic import Traffic
from models.catalogue import Catalogue
from tests.tidy.source import product_files

FREE, PRO, _, ENTERPRISE = DEFAULT_PLANS
TODAY = date(2026, 12, 1)


def price(model: str, *micros: int, provider: str = "one") -> TokenPrice:
    """Input, cached, output: micro-dollars for a million tokens."""
    given, cached, output = micros
    return TokenPrice(model, provider, provider.title(), model, given, cached, output, None)


def carried(model: str, *, calls: int, prompt: int, output: int, cached: int = 0, uncounted: int = 0) -> Traffic:
    return Traffic(model, calls, calls, uncounted, calls * prompt, calls * cached, calls * output)


def month(*rows: Traffic, prices: list[TokenPrice]) -> Compared:
    return compare(PRO, rows, prices, 30)


def test_example_1_short_chats_on_a_small_model_are_dearer_by_the_flat_fare() -> None:
    """300 chats a day, 500 in and 250 out, at $0.07 and $0.30: 4.5 M x 0.07 + 2.25 M x 0.30 = $0.315 + $0.675 = $0.99."""
    found = what_if(PRO, Imagined("gpt-oss-20b", 1, 300, 500, 0, 250), [price("gpt-oss-20b", 70_000, 35_000, 300_000)])
    assert (found.cheapest_micros, found.flat_micros, found.saved_at_least_micros) == (990_000, 80_000_000, -79_010_000)
    # $80 / 9,000 used fares; $80 / 30,000 if all were.
    assert (found.used_permille, found.flat_a_fare_micros, found.flat_a_fare_at_full_use_micros) == (300, 8_889, 2_667)


def test_example_2_long_contexts_on_a_large_model_are_cheaper_by_the_flat_fare() -> None:
    """500 a day, 100,000 in of which 60,000 cached, 2,000 out, at $0.60, $0.11 and $2.20.

    600 M x 0.60 + 900 M x 0.11 + 30 M x 2.20 = $360 + $99 + $66 = $525, $445 more than $80.
    """
    found = what_if(PRO, Imagined("glm-4.7", 1, 500, 100_000, 60_000, 2_000), [price("glm-4.7", 600_000, 110_000, 2_200_000)])
    assert (found.cheapest_micros, found.saved_at_least_micros, found.used_permille) == (525_000_000, 445_000_000, 500)


def test_example_3_the_same_calls_are_cheaper_or_dearer_by_how_much_of_the_quota_is_used() -> None:
    """4,000 in and 500 out at $0.59 and $0.79 are $0.002755 a call: 30,000 are $82.65, 9,000 are $24.795."""
    prices = [price("llama-3.3-70b-instruct", 590_000, 590_000, 790_000)]
    imagined = Imagined("llama-3.3-70b-instruct", 1, 1000, 4_000, 0, 500)
    whole, third = what_if(PRO, imagined, prices), what_if(PRO, replace(imagined, calls_a_day=300), prices)
    assert (whole.cheapest_micros, whole.saved_at_least_micros) == (82_650_000, 2_650_000)
    assert (third.cheapest_micros, third.saved_at_least_micros) == (24_795_000, -55_205_000)


def test_each_model_is_taken_where_it_is_cheapest_and_where_it_is_dearest() -> None:
    prices = [
        price("a", 1_000_000, 1_000_000, 1_000_000, provider="dear"),
        price("a", 100_000, 100_000, 100_000, provider="cheap"),
        price("b", 200_000, 200_000, 200_000, provider="dear"),
    ]
    found = month(
        carried("a", calls=10, prompt=90_000, output=10_000), carried("b", calls=10, prompt=90_000, output=10_000), prices=prices
    )
    assert [offer.price.provider for offer in found.models[0].offers] == ["cheap", "dear"]
    assert (found.cheapest_micros, found.dearest_micros) == (100_000 + 200_000, 1_000_000 + 200_000)
    assert found.saved_at_most_micros == 1_200_000 - 80_000_000


def test_a_model_that_nobody_sells_is_left_out_on_both_sides_and_said_to_be() -> None:
    """Of four fares one is known: a quarter of $80 stands beside its price."""
    rows = (carried("known", calls=1, prompt=1_000_000, output=0), carried("ours alone", calls=3, prompt=9, output=9))
    found = month(*rows, prices=[price("known", 30_000_000, 30_000_000, 0)])
    assert (found.unknown_fares, found.flat_compared_micros, found.saved_at_least_micros) == (3, 20_000_000, 10_000_000)
    assert found.models[1].offers == ()


def test_calls_without_token_counts_are_counted_as_such() -> None:
    assert month(carried("a", calls=5, prompt=0, output=0, uncounted=5), prices=[]).uncounted == 5


def test_what_has_no_price_or_no_quota_is_compared_with_nothing() -> None:
    rows = [carried("a", calls=5, prompt=10, output=10)]
    found = compare(ENTERPRISE, rows, [price("a", 1, 1, 1)], 30)
    assert (found.flat_micros, found.saved_at_least_micros, found.used_permille) == (None, None, None)
    assert month(prices=[]).flat_a_fare_micros is None
    free = compare(FREE, rows, [price("a", 10_000_000, 1, 1_000_000)], 30)
    assert (free.flat_micros, free.saved_at_least_micros) == (0, 550)


def test_the_plans_price_is_of_as_many_days() -> None:
    assert compare(PRO, [], [], 3).flat_micros == 8_000_000


def test_a_days_calls_beyond_the_quota_are_not_imagined() -> None:
    with pytest.raises(MoreThanTheQuota, match="1,002 fares a day are more than the 1,000 of the Pro plan"):
        what_if(PRO, Imagined("a", 2, 501, 1, 0, 1), [])
    assert what_if(PRO, Imagined("a", 2, 500, 1, 0, 1), []).fares == 30_000


def test_more_cached_than_sent_is_no_less_than_nothing() -> None:
    found = what_if(PRO, Imagined("a", 1, 1, 100, 500, 0), [price("a", 1_000_000, 100_000, 0)])
    assert found.cheapest_micros == 30 * 100 // 10


def test_every_name_of_the_table_is_sold_under_it_and_is_a_model_of_ours() -> None:
    """When a new genai-prices has dropped or renamed one, this says which."""
    found = {(one.model, one.provider): one for one in token_prices(PROVIDER_NAMES, TODAY)}
    assert set(found) == {(model, provider) for model, sold in PROVIDER_NAMES.items() for provider in sold}
    assert {model for model in PROVIDER_NAMES if not Catalogue.load().knows(model)} == set()
    assert all(0 < one.input < 100_000_000 and 0 < one.output < 100_000_000 for one in found.values())
    assert all(0 < one.cached <= one.input and one.page for one in found.values())


def test_prices_are_those_in_force_on_the_day() -> None:
    """OpenRouter's price of gpt-oss-120b changed on 2026-10-19."""
    by_day = {day: token_prices(["gpt-oss-120b"], day) for day in (date(2026, 10, 18), date(2026, 10, 19))}
    before, after = ({one.provider: one.input for one in prices}["openrouter"] for prices in by_day.values())
    assert (before, after) == (39_000, 150_000)


def test_a_model_unknown_to_the_table_has_no_price() -> None:
    assert token_prices(["smollm2-135m-instruct", "no such model"], TODAY) == []


def test_one_file_knows_the_package_of_prices() -> None:
    importing = [path.name for path in product_files() if "genai_prices" in path.read_text(encoding="utf-8")]
    assert importing == ["token_prices.py"]
