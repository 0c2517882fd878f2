"""A key is given a hundred answers again at once, and then ten a second."""

import pytest

from gateway.limits.refusals import RateExceeded
from gateway.limits.replays import BURST, KEYS_MAX, Replays


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_burst_and_then_a_rate_and_each_key_for_itself() -> None:
    clock = Clock()
    replays = Replays(clock)
    for _ in range(BURST):
        replays.take("k")
    with pytest.raises(RateExceeded) as caught:
        replays.take("k")
    assert 0 < caught.value.retry_after_ms <= 100
    replays.take("other")
    clock.seconds += 1.0
    for _ in range(10):
        replays.take("k")
    with pytest.raises(RateExceeded):
        replays.take("k")
    assert replays.given == BURST + 11


def test_it_remembers_no_more_keys_than_it_says() -> None:
    replays = Replays(Clock())
    for number in range(KEYS_MAX + 5):
        replays.take(str(number))
    assert len(replays._due) == KEYS_MAX
