"""What a call is told that can't wait for a GPU, or has waited for nothing: one status, and when to come back."""

import pytest

from backends.slot import LineTooSlow, PoolFull, QueueUnavailable, WaitedTooLong
from gateway.api.refusals import refusal_of
from gateway.standings import NotInLine


@pytest.mark.parametrize(
    ("error", "retry_after", "words"),
    [
        (PoolFull(256), 2, "All GPUs for this model are busy."),
        (WaitedTooLong(60.0), 2, "All GPUs for this model are busy."),
        (LineTooSlow(9, 12.4), 13, "the wait would be about 12 s, which is too long"),
        (LineTooSlow(9, 0.2), 1, "the wait would be about 1 s"),
        (LineTooSlow(9, 900.0), 60, "about 900 s"),
    ],
)
def test_a_full_or_slow_line_is_the_houses_fault_and_says_when_to_come_back(
    error: Exception, retry_after: int, words: str
) -> None:
    refusal = refusal_of(error, 0)
    assert (refusal.status, refusal.code, refusal.retry_after_seconds) == (503, "server_is_overloaded", retry_after)
    assert words in refusal.message
    assert "Nothing was billed" in refusal.message


def test_a_line_that_can_not_be_asked_is_no_line_without_the_call() -> None:
    assert refusal_of(QueueUnavailable(), 0).status == 503
    assert (refusal_of(NotInLine("x"), 0).status, refusal_of(NotInLine("x"), 0).code) == (404, "not_in_queue")
