"""When a client is told to come back: soon enough that it does, in a spelling that all read, and not where it can't help."""

import pytest

from backends.slot import LineTooSlow, PoolFull, WaitedTooLong
from gateway.access.unknown import TooManyUnknownKeys
from gateway.api.faults import EngineOverloaded, EngineRefused
from gateway.api.once import AnswerNotKept
from gateway.api.refusals import refusal_of
from gateway.drain import Draining
from gateway.limits.refusals import (
    GateClosed,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    QuotaUsedUp,
    RateExceeded,
    TooManyOpenCalls,
)
from gateway.loops import RequestRepeated

HOUR_MS = 3_600_000
LATER = [
    *[RateExceeded("account", 1, ms) for ms in (-5, 0, 1, 999, 1001, 59_999, 60_001, HOUR_MS)],
    *[GateClosed("why", ms) for ms in (0, 1000, HOUR_MS)],
    *[LineTooSlow(1, seconds) for seconds in (0.0, 1.5, 3600.0)],
    *[TooManyUnknownKeys(seconds) for seconds in (0.0, 0.2, 3600.0)],
    *[PoolFull(1), WaitedTooLong(60.0), EngineOverloaded("x"), Draining(), TooManyOpenCalls(1, 1), IdempotencyKeyInUse()],
]


@pytest.mark.parametrize("error", LATER, ids=repr)
def test_a_wait_is_told_in_whole_seconds_from_1_to_60(error: Exception) -> None:
    """An hour: Anthropic's SDKs sleep it out, Codex hangs, openai-node and the AI SDK come back after half a second."""
    refusal = refusal_of(error, 0)
    headers = dict(refusal.headers())
    assert refusal.status in (409, 429, 503)
    assert headers[b"retry-after"].isdigit()
    assert 1 <= int(headers[b"retry-after"]) <= 60
    assert 1 <= int(headers[b"retry-after-ms"]) <= 60_000
    assert b"x-should-retry" not in headers


@pytest.mark.parametrize(
    "error",
    [
        QuotaUsedUp("account", 60, 60, HOUR_MS),
        RequestRepeated(20, 90),
        IdempotencyKeyReused(),
        AnswerNotKept("r1"),
    ],
    ids=repr,
)
def test_what_no_retry_can_change_says_so_and_names_no_time(error: Exception) -> None:
    headers = dict(refusal_of(error, 0).headers())
    assert headers == {b"x-should-retry": b"false"}


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_client_has_to_mend_is_a_400_without_a_time(status: int) -> None:
    """Codex sends 401 to 404, 413 and 422 five times more; 400 is final to all."""
    refusal = refusal_of(EngineRefused(status, "why", None), 0)
    assert (refusal.status, refusal.headers()) == (400, [])
