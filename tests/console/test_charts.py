"""A chart's geometry says what its figures do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.console.charts import HEIGHT, WIDTH, bars, round_up


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=60))
def test_bars_stand_inside_the_picture_in_proportion(values: list[tuple[int, int]]) -> None:
    chart = bars([(str(place), first, second, "") for place, (first, second) in enumerate(values)])
    most = round_up(max((sum(pair) for pair in values), default=0))
    for bar, (first, second) in zip(chart.bars, values, strict=True):
        assert 0 <= bar.left <= bar.left + bar.width <= WIDTH
        assert bar.height == pytest.approx(HEIGHT * first / most, abs=0.01)
        assert bar.second_height == pytest.approx(HEIGHT * second / most, abs=0.01)
        assert bar.height + bar.second_height <= HEIGHT + 0.02
    assert len(chart.ticks) <= 7


@given(st.integers(0, 10**12))
def test_the_top_of_an_axis_is_a_round_number_that_nothing_exceeds(value: int) -> None:
    top = round_up(value)
    assert value <= top <= max(4, 2.5 * value)
    assert str(top).rstrip("0") in {"4", "8", "12", "2"}
