"""A request that fails again and again is found by its key and body; one that succeeds, and every other, is not looked at."""

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.body import ClientGone
from gateway.api.looping import Attempt
from gateway.errors import Refusal
from gateway.limits.refusals import IdempotencyKeyInUse, QuotaUsedUp, RateExceeded, TooManyOpenCalls
from gateway.loops import BODIES_MAX, KEYS_MAX, WINDOW_SECONDS, Loops, RequestRepeated

BODY = b'{"model": "m"}'
FAILURE = Refusal(503, "busy")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def send(loops: Loops, error: Exception | None, *, key: str = "k", body: bytes = BODY, times: int = 1) -> None:
    """So many requests that end with `error`."""
    for _ in range(times):
        with contextlib.suppress(type(error or FAILURE), RequestRepeated), Attempt(loops, key, body):
            if error is not None:
                raise error


def is_stopped(loops: Loops, *, key: str = "k", body: bytes = BODY) -> bool:
    try:
        loops.check(key, body)
    except RequestRepeated:
        return True
    return False


def test_it_is_stopped_after_as_many_errors_in_a_row_and_not_before() -> None:
    loops = Loops(20, Clock())
    send(loops, FAILURE, times=19)
    assert not is_stopped(loops)
    send(loops, FAILURE)
    assert is_stopped(loops)
    with pytest.raises(RequestRepeated) as caught:
        loops.check("k", BODY)
    assert (caught.value.errors, caught.value.seconds) == (20, WINDOW_SECONDS)


def test_a_success_starts_the_row_anew() -> None:
    loops = Loops(3, Clock())
    for _ in range(10):
        send(loops, FAILURE, times=2)
        send(loops, None)
    assert not is_stopped(loops)


def test_the_same_body_a_thousand_times_with_success_is_an_evaluation() -> None:
    loops = Loops(3, Clock())
    send(loops, None, times=1000)
    assert not is_stopped(loops)


def test_another_body_and_another_key_are_other_rows() -> None:
    loops = Loops(3, Clock())
    send(loops, FAILURE, times=3)
    assert not is_stopped(loops, body=b"{}")
    assert not is_stopped(loops, key="other")
    send(loops, None, body=b"{}")
    assert is_stopped(loops)


def test_two_loops_of_one_key_are_both_stopped() -> None:
    """OpenCode sends a question and its title at once."""
    loops = Loops(3, Clock())
    for _ in range(3):
        send(loops, FAILURE, body=b"question")
        send(loops, FAILURE, body=b"title")
    assert is_stopped(loops, body=b"question")
    assert is_stopped(loops, body=b"title")


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (QuotaUsedUp("account", 60, 60, 0), False),
        (RateExceeded("account", 10, 500), True),
        (KeyError("our own fault"), True),
        (ClientGone(), False),
        # An answer to one of the key's calls is on its way.
        (TooManyOpenCalls(2, 2), False),
        (IdempotencyKeyInUse(), False),
        (RequestRepeated(3, 60), False),
    ],
)
def test_what_counts_as_an_error(error: Exception, counts: bool) -> None:
    loops = Loops(3, Clock())
    send(loops, error, times=3)
    assert is_stopped(loops) is counts


def test_after_two_minutes_it_is_tried_again() -> None:
    clock = Clock()
    loops = Loops(3, clock)
    send(loops, FAILURE, times=2)
    clock.seconds = WINDOW_SECONDS - 1
    send(loops, FAILURE)
    assert is_stopped(loops)
    clock.seconds = WINDOW_SECONDS
    assert not is_stopped(loops)
    send(loops, FAILURE, times=2)
    assert not is_stopped(loops)


def test_errors_over_more_than_two_minutes_are_no_loop() -> None:
    clock = Clock()
    loops = Loops(3, clock)
    for _ in range(10):
        send(loops, FAILURE)
        clock.seconds += WINDOW_SECONDS / 2
    assert not is_stopped(loops)


def test_a_key_without_a_recent_error_has_nothing_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    loops = Loops(3, clock)
    send(loops, FAILURE)
    send(loops, FAILURE, key="other")
    send(loops, None, key="other")
    clock.seconds = WINDOW_SECONDS
    monkeypatch.setattr(hashlib, "blake2b", lambda *_, **__: pytest.fail("a body was hashed"))
    for key in ("k", "other", "third"):
        send(loops, None, key=key)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=200))
def test_memory_is_bounded_and_nothing_is_left_over(failures: list[tuple[int, int]]) -> None:
    clock = Clock()
    loops = Loops(3, clock)
    for key, body in failures:
        send(loops, FAILURE, key=str(key), body=str(body).encode())
    assert all(0 < len(rows) <= BODIES_MAX for rows in loops._keys.values())
    clock.seconds = WINDOW_SECONDS
    for key, body in failures:
        send(loops, None, key=str(key), body=str(body).encode())
    assert not loops._keys


def test_keys_beyond_the_last_ones_are_let_go() -> None:
    loops = Loops(1, Clock())
    for key in range(KEYS_MAX + 1):
        send(loops, FAILURE, key=str(key))
    assert len(loops._keys) == KEYS_MAX
    assert not is_stopped(loops, key="0")
    assert is_stopped(loops, key="1")
