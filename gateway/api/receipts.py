"""What every answer says of the fare and the limits: our receipt, OpenAI's headers, the IETF's, and those of its dialect."""

from datetime import UTC, datetime
from functools import lru_cache

from gateway.api.dialect import Dialect
from gateway.api.exchange import Headers
from gateway.limits.hold import Hold
from gateway.limits.refusals import QuotaUsedUp

DAY_SECONDS = 86_400
SLOW_LANE = (b"x-faregate-lane", b"slow")
PACK_REMAINING = b"x-faregate-pack-remaining"
PACK_LANE = (b"x-faregate-lane", b"pack")


def receipt(hold: Hold, now_ms: int, dialect: Dialect) -> Headers:
    """What an admitted call's answer says."""
    told = (hold.fare, hold.limit, hold.remaining, hold.resets_at_ms)
    numbers = _headers(*told, now_ms, per_minute=hold.ask.numbers.rpm, dialect=dialect)
    if hold.pack_left is not None:
        numbers += [PACK_LANE, (PACK_REMAINING, b"%d" % hold.pack_left)]
    return [*numbers, *dialect.account(hold.account.encode())]


def slow_receipt(spent: QuotaUsedUp, now_ms: int, dialect: Dialect) -> Headers:
    """What a call beyond the quota is told, which runs on the slow lane."""
    return [*refused_receipt(spent, now_ms, dialect), SLOW_LANE]


def refused_receipt(refused: QuotaUsedUp, now_ms: int, dialect: Dialect) -> Headers:
    """What a call that found the day's quota spent is told; it cost nothing."""
    told = (0, refused.limit, refused.limit - refused.used, refused.resets_at_ms)
    numbers = _headers(*told, now_ms, per_minute=-1, dialect=dialect)
    return numbers if refused.packs is None else [*numbers, (PACK_REMAINING, b"%d" % refused.packs.left)]


def _headers(
    fare: int, limit: int, remaining: int, resets_at_ms: int, now_ms: int, *, per_minute: int, dialect: Dialect
) -> Headers:
    """A limit of -1 is none: then there is no remaining to tell.

    `RateLimit`: draft-ietf-httpapi-ratelimit-headers-11. `x-ratelimit-*`: OpenAI's names; its resets are Go durations.
    """
    headers = [(b"x-faregate-fare", b"%d" % fare)]
    if limit < 0:
        return [*headers, (b"x-faregate-remaining", b"unlimited")]
    left = b"%d" % max(0, remaining)
    seconds = max(1, -(-(resets_at_ms - now_ms) // 1000))
    policy, reset = _fixed(limit, per_minute, resets_at_ms)
    return [
        *headers,
        (b"x-faregate-remaining", left),
        (b"x-faregate-reset", reset),
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", left),
        (b"x-ratelimit-reset-requests", b"%dh%dm%ds" % (seconds // 3600, seconds % 3600 // 60, seconds % 60)),
        (b"ratelimit-policy", policy),
        (b"ratelimit", b'"daily";r=%b;t=%d' % (left, seconds)),
        *dialect.rate_limit(b"%d" % limit, left, reset),
    ]


@lru_cache(maxsize=256)
def _fixed(limit: int, per_minute: int, resets_at_ms: int) -> tuple[bytes, bytes]:
    burst = b'"burst";q=%d;w=60,' % per_minute if per_minute >= 0 else b""
    return burst + b'"daily";q=%d;w=%d' % (limit, DAY_SECONDS), utc(resets_at_ms).encode()


def utc(ms: int) -> str:
    """2026-12-01T00:00:00Z"""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_words(seconds: int) -> str:
    """3 hours 12 minutes; the larger two units."""
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    parts = [_plural(hours, "hour"), _plural(minutes, "minute")] if hours else [_plural(minutes, "minute")] if minutes else []
    return " ".join(part for part in parts if part) or _plural(max(1, seconds), "second")


def _plural(count: int, unit: str) -> str:
    return "" if count == 0 else f"{count} {unit}{'' if count == 1 else 's'}"
