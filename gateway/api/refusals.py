"""The one table from what went wrong, as the packages name it, to what a client is told: status, code, words, when to return."""

import math
from collections.abc import Callable
from typing import Any

from backends.failures import EngineFault, EngineTimedOut
from backends.slot import LineTooSlow, PoolFull, QueueUnavailable, WaitedTooLong
from billing.fare import FareOutOfBounds
from billing.reader import RecordUnavailable
from billing.webhooks import EventForeign, EventUnreadable, SignatureWrong
from gateway.access import caller
from gateway.access.keystore import KeyStoreUnavailable
from gateway.access.unknown import TooManyUnknownKeys
from gateway.api.constraints import ConstraintNotHeld
from gateway.api.delivery import TotalTimedOut
from gateway.api.faults import EngineFailed, EngineOverloaded, EngineRefused, client_error
from gateway.api.images import ImageUnavailable
from gateway.api.once import AnswerNotKept
from gateway.api.queueing import NoReplicaReady
from gateway.api.receipts import in_words, utc
from gateway.api.sse import StreamBroke
from gateway.drain import Draining
from gateway.errors import Refusal
from gateway.limits.refusals import (
    GateClosed,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    PacksUsed,
    QuotaUsedUp,
    RateExceeded,
    TooManyOpenCalls,
)
from gateway.loops import RequestRepeated
from gateway.standings import NotInLine
from models.catalogue import ModelUnknown

_RETRY_SECONDS = 2
# A name may be as long as a body; said back in full, and escaped, it would be longer still.
NAME_SHOWN = 80


def kinds() -> tuple[type[Exception], ...]:
    """Every error that has words for the client."""
    return (Refusal, QuotaUsedUp, *(kind for kind, _ in _TABLE))


def refusal_of(error: BaseException, now_ms: int) -> Refusal:
    """An error that is not in the table is our own fault: 500, and the log has it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, QuotaUsedUp):
        return _quota(error, now_ms)
    for kind, say in _TABLE:
        if isinstance(error, kind):
            return say(error)
    return Refusal(500, "Something went wrong in the gateway. Nothing was billed.", kind="server_error", code="internal_error")


def _unavailable(what: str, code: str = "service_unavailable") -> Callable[[Any], Refusal]:
    return lambda _: _not_now(what, code, _RETRY_SECONDS)


def _not_now(what: str, code: str, retry_after_seconds: int) -> Refusal:
    return Refusal(
        503,
        f"{what} Nothing was billed; try again in a moment.",
        kind="service_unavailable_error",
        code=code,
        retry_after_seconds=retry_after_seconds,
    )


_overloaded = _unavailable("All GPUs for this model are busy.", "server_is_overloaded")


def _whole_seconds(ms: float) -> int:
    """A Retry-After that every client honours: 1 to 60, rounded up."""
    return min(60, max(1, math.ceil(ms / 1000)))


def _line_too_slow(error: LineTooSlow) -> Refusal:
    """Known before the call waited: it would have to wait longer than its class, or it itself, allows."""
    what = (
        f"All GPUs for this model are busy; the wait would be about {max(1, round(error.expected_seconds))} s, which is too long."
    )
    return _not_now(what, "server_is_overloaded", _whole_seconds(error.expected_seconds * 1000))


def _engine_broke(_: Any) -> Refusal:
    return Refusal(
        502, "The engine failed before its answer was complete. Nothing was billed.", kind="server_error", code="engine_failed"
    )


def _timed_out(_: Any) -> Refusal:
    """Without the error's own words, which name the engine's address: they are for the log."""
    return Refusal(504, "The engine did not answer in time. Nothing was billed.", kind="server_error", code="engine_timeout")


def _unauthorised(error: Any) -> Refusal:
    return Refusal(401, str(error), code="invalid_api_key")


def _forbidden(code: str) -> Callable[[Any], Refusal]:
    return lambda error: Refusal(403, str(error), kind="permission_error", code=code)


def _quota(error: QuotaUsedUp, now_ms: int) -> Refusal:
    """No Retry-After: several clients would sleep until midnight; `x-should-retry: false` stops the others."""
    whose = "this key's own quota" if error.scope == "key" else "the plan's quota"
    seconds = max(1, (error.resets_at_ms - now_ms) // 1000)
    return Refusal(
        429,
        f"You have used {error.used} of {error.limit} requests today ({whose}).{_packs(error.packs)} It starts anew in "
        f"{in_words(seconds)}, at {utc(error.resets_at_ms)} (midnight UTC).",
        kind="insufficient_quota",
        code="insufficient_quota",
        should_retry=False,
    )


def _packs(packs: PacksUsed | None) -> str:
    if packs is None:
        return ""
    if packs.left_this_month == 0 and packs.left > 0:
        return (
            f" Your packs have {packs.left}, but your own cap of {packs.per_month} a month is reached: raise it to go on at once."
        )
    return f" Your packs have {packs.left}: buy one to go on at once."


def _rate(error: RateExceeded) -> Refusal:
    whose = "this key" if error.scope == "key" else "your plan"
    return Refusal(
        429,
        f"Rate limit reached: {whose} allows {error.limit} requests per minute. Try again in {max(1, error.retry_after_ms)} ms.",
        kind="requests",
        code="rate_limit_exceeded",
        retry_after_seconds=_whole_seconds(error.retry_after_ms),
        retry_after_ms=min(60_000, max(1, error.retry_after_ms)),
    )


def _concurrency(error: TooManyOpenCalls) -> Refusal:
    return Refusal(
        429,
        f"You have {error.open} calls open, and your plan allows {error.limit} at once. Wait for one to end.",
        kind="requests",
        code="concurrency_limit_exceeded",
        retry_after_seconds=1,
    )


def _closed(error: GateClosed) -> Refusal:
    what = "The limits can't be checked at present, so no call is taken."
    return _not_now(what, "limits_unavailable", _whole_seconds(error.retry_after_ms))


def _unknown_model(error: ModelUnknown) -> Refusal:
    near = f" Did you mean {', '.join(error.near)}?" if error.near else ""
    return Refusal(
        404,
        f"The model {error.name[:NAME_SHOWN]!r} does not exist here.{near} GET /v1/models lists those that do.",
        code="model_not_found",
        param="model",
    )


def _no_event(error: Any) -> Refusal:
    """Of a webhook: for whoever set it up, in words alone."""
    return Refusal(400, str(error))


def _not_in_line(_: Any) -> Refusal:
    return Refusal(
        404,
        "No request of this key with this id waits for a GPU: it has begun or ended, or was never here. Its answer says how long "
        "it waited.",
        code="not_in_queue",
    )


def _too_many_unknown_keys(error: Any) -> Refusal:
    return Refusal(
        429,
        "Too many requests with unknown keys came from your address. Check the key, and try again in a moment.",
        kind="requests",
        code="too_many_unknown_keys",
        retry_after_seconds=_whole_seconds(error.seconds * 1000),
    )


def _repeated(error: RequestRepeated) -> Refusal:
    """Some clients send 429 and 5xx again for ever; all of them give up on a 400."""
    return Refusal(
        400,
        f"This same request was sent {error.errors} times in a row and failed each time, so it was not tried again. Look at the "
        f"errors before this one. It will be taken again in {error.seconds} seconds.",
        code="repeated_request",
        should_retry=False,
    )


def _in_use(_: Any) -> Refusal:
    """SDKs come back by themselves after a 409."""
    return Refusal(
        409,
        "A request with this Idempotency-Key is still running. Come back in a moment: you will be given its answer.",
        code="idempotency_key_in_use",
        retry_after_seconds=_RETRY_SECONDS,
    )


def _reused(_: Any) -> Refusal:
    return Refusal(
        422,
        "This Idempotency-Key belongs to a request with another body. Use a new key for a new request.",
        code="idempotency_key_reused",
        should_retry=False,
    )


def _not_kept(error: AnswerNotKept) -> Refusal:
    return Refusal(
        422,
        f"The request with this Idempotency-Key is done (x-request-id {error.request_id}) and was billed, but its answer was too "
        "large to be kept. It was not run again; use a new key for that.",
        code="idempotent_answer_not_kept",
        should_retry=False,
    )


_TABLE: tuple[tuple[type[Exception], Callable[[Any], Refusal]], ...] = (
    (RateExceeded, _rate),
    (TooManyOpenCalls, _concurrency),
    (GateClosed, _closed),
    (IdempotencyKeyInUse, _in_use),
    (IdempotencyKeyReused, _reused),
    (AnswerNotKept, _not_kept),
    (RequestRepeated, _repeated),
    (ModelUnknown, _unknown_model),
    (ImageUnavailable, lambda error: Refusal(400, f"{error} Nothing was billed.", code="image_not_fetched", param=error.place)),
    (ConstraintNotHeld, lambda error: Refusal(400, str(error), code="unsupported_parameter")),
    (FareOutOfBounds, lambda error: Refusal(400, str(error), code="fare_out_of_bounds")),
    (LineTooSlow, _line_too_slow),
    (PoolFull, _overloaded),
    (WaitedTooLong, _overloaded),
    (EngineOverloaded, _overloaded),
    (NoReplicaReady, _unavailable("No engine that serves this model is healthy at present.")),
    (QueueUnavailable, _unavailable("The queue can't be reached at present.")),
    (NotInLine, _not_in_line),
    (Draining, _unavailable("This gateway is restarting.")),
    (EngineRefused, client_error),
    (EngineTimedOut, _timed_out),
    (TotalTimedOut, _timed_out),
    (EngineFailed, _engine_broke),
    (EngineFault, _engine_broke),
    (StreamBroke, _engine_broke),
    (KeyStoreUnavailable, _unavailable("Keys can't be looked up at present.")),
    (TooManyUnknownKeys, _too_many_unknown_keys),
    (RecordUnavailable, _unavailable("The record can't be reached at present.")),
    (SignatureWrong, _no_event),
    (EventUnreadable, _no_event),
    (EventForeign, _no_event),
    (caller.ModelNotAllowedForKey, _forbidden("model_not_allowed_for_key")),
    (caller.AccountSuspended, _forbidden("account_suspended")),
    (caller.ScopeMissing, _forbidden("scope_missing")),
    (caller.KeyRefused, _unauthorised),
)
