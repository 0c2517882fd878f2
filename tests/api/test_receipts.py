"""Every answer carries its fare, what remains, and when the day starts anew, in each of the three header families."""

import pytest

from gateway.api.chunks import CHUNKS
from gateway.api.receipts import in_words, receipt, refused_receipt, utc
from gateway.limits.hold import Ask, Hold
from gateway.limits.policy import Numbers
from gateway.limits.refusals import QuotaUsedUp

MIDNIGHT = 1_796_083_200_000  # 2026-12-01T00:00:00Z


def held(fare: int, used: int, numbers: Numbers) -> Hold:
    ask = Ask("01a22ed5-73b3-7eba-86cf-090f5ded5c0b", "a", "k", 1, fare, numbers, "m", "chat", stream=False)
    hold = Hold(ask, used, 0, close=lambda _: None)
    assert hold.resets_at_ms == MIDNIGHT
    return hold


def test_the_receipt_of_a_limited_plan() -> None:
    headers = dict(receipt(held(2, 19, Numbers(quota=60, rpm=10)), MIDNIGHT - 3_723_000, CHUNKS))
    assert headers == {
        b"x-faregate-fare": b"2",
        b"x-faregate-remaining": b"41",
        b"x-faregate-reset": b"2026-12-01T00:00:00Z",
        b"x-ratelimit-limit-requests": b"60",
        b"x-ratelimit-remaining-requests": b"41",
        b"x-ratelimit-reset-requests": b"1h2m3s",
        b"ratelimit-policy": b'"burst";q=10;w=60,"daily";q=60;w=86400',
        b"ratelimit": b'"daily";r=41;t=3723',
        b"openai-organization": b"a",
    }


def test_an_unlimited_plan_promises_no_number() -> None:
    headers = dict(receipt(held(1, 5, Numbers()), 0, CHUNKS))
    assert headers == {b"x-faregate-fare": b"1", b"x-faregate-remaining": b"unlimited", b"openai-organization": b"a"}


def test_a_spent_quota_says_so_and_costs_nothing() -> None:
    headers = dict(refused_receipt(QuotaUsedUp("account", 60, 60, MIDNIGHT), MIDNIGHT - 1000, CHUNKS))
    assert (headers[b"x-faregate-fare"], headers[b"x-faregate-remaining"]) == (b"0", b"0")
    assert headers[b"x-faregate-reset"] == b"2026-12-01T00:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (3600, "1 hour"),
        (7260, "2 hours 1 minute"),
        (86399, "23 hours 59 minutes"),
    ],
)
def test_a_reset_in_words(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


def test_utc() -> None:
    assert utc(MIDNIGHT) == "2026-12-01T00:00:00Z"
