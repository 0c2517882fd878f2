"""The breaker's table, row by row."""

import asyncio

import pytest

from backends.breaker import Breaker, State, after_accusation, after_fault, after_success, after_try_began, is_fault, may_try
from backends.failures import Aborted, EngineBroke, EngineSpokeNonsense, EngineTimedOut, EngineUnreachable

CLOSED = Breaker()


def opened(now: float = 0.0) -> Breaker:
    breaker = CLOSED
    for _ in range(3):
        breaker = after_fault(breaker, now)
    return breaker


def test_the_third_fault_in_a_row_opens_it() -> None:
    twice = after_fault(after_fault(CLOSED, 0), 0)
    assert twice.state is State.CLOSED
    assert after_fault(twice, 0).state is State.OPEN
    assert after_fault(after_success(twice), 0).state is State.CLOSED


def accused(breaker: Breaker, *accounts: str) -> Breaker:
    for account in accounts:
        breaker = after_accusation(breaker, 0, account)
    return breaker


def test_two_accounts_can_never_open_it_and_a_success_silences_all() -> None:
    assert accused(CLOSED, *("ab" * 500)).state is State.CLOSED
    assert accused(after_success(accused(CLOSED, "a", "b")), "c", "a").state is State.CLOSED


def test_the_third_account_in_a_row_opens_it() -> None:
    assert accused(CLOSED, "a", "b", "a", "c").state is State.OPEN


def test_who_sends_bad_requests_cannot_keep_it_open() -> None:
    """Two accounts' calls, taken as tries, doubled the pause up to half a minute for everybody."""
    breaker, now = opened(), 0.0
    for account in "abababab":
        now += 1.0
        assert may_try(breaker, now)
        breaker = after_accusation(after_try_began(breaker, now), now, account)
    assert breaker.pause_seconds == 1.0
    assert after_success(breaker) == CLOSED


def test_late_news_of_calls_from_before_change_nothing() -> None:
    assert after_success(opened()) == opened()
    assert after_fault(opened(), 5) == opened()


def test_it_is_tried_after_its_pause() -> None:
    assert not may_try(opened(now=10), 10.9)
    assert may_try(opened(now=10), 11)


def test_a_try_that_succeeds_closes_it() -> None:
    assert after_success(after_try_began(opened(), 1)) == CLOSED


def test_each_try_that_fails_doubles_the_pause_up_to_half_a_minute() -> None:
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(8):
        pauses.append(breaker.pause_seconds)
        now += breaker.pause_seconds
        breaker = after_fault(after_try_began(breaker, now), now)
        assert breaker.state is State.OPEN
        assert not may_try(breaker, now + breaker.pause_seconds - 0.1)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_try_that_never_reported_is_followed_by_another() -> None:
    trying = after_try_began(opened(), 1)
    assert not may_try(trying, 1.5)
    assert may_try(trying, 2)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (200, False), (400, False), (404, False), (429, False), (499, False), (500, True), (501, False), (502, True), (503, True),
        (EngineUnreachable(), True), (EngineTimedOut("e", "first_byte", 1), True), (EngineBroke("e", "body"), True),
        (EngineSpokeNonsense("e", "x"), True), (Aborted(), False), (asyncio.CancelledError(), False), (ValueError(), False),
    ],
)  # fmt: skip
def test_whose_fault_it_is(outcome: BaseException | int, expected: bool) -> None:
    assert is_fault(outcome) is expected
