"""From a caller's plan and key to the numbers that the admit script checks; pure."""

from dataclasses import dataclass, replace
from typing import Protocol

from billing.plans import Plan
from billing.verdict import free_hangups

UNLIMITED = -1
NO_PACKS = -1


class Limited(Protocol):
    """Whoever calls: a plan, the account's packs, and the caps that it and its key have set themselves."""

    @property
    def plan(self) -> Plan: ...
    @property
    def key_quota_per_day(self) -> int | None: ...
    @property
    def key_requests_per_minute(self) -> int | None: ...
    @property
    def pack_fares(self) -> int: ...
    @property
    def pack_fares_per_month(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Limits of one call; -1 is none. Quotas are fares a day, bursts calls that may come at once. `pack_fares` are those of the
    account's packs, used or not: 0 where it has none, -1 where its plan does not go on with packs."""

    quota: int = UNLIMITED
    key_quota: int = UNLIMITED
    rpm: int = UNLIMITED
    burst: int = 1
    key_rpm: int = UNLIMITED
    key_burst: int = 1
    concurrency: int = UNLIMITED
    free_hangups: int = UNLIMITED
    pack_fares: int = NO_PACKS
    pack_fares_per_month: int = UNLIMITED


def numbers(caller: Limited) -> Numbers:
    plan, envelope = caller.plan, caller.plan.envelope
    return Numbers(
        quota=_or_unlimited(plan.quota_per_day),
        key_quota=_or_unlimited(caller.key_quota_per_day),
        rpm=_or_unlimited(envelope.requests_per_minute),
        burst=burst(envelope.requests_per_minute),
        key_rpm=_or_unlimited(caller.key_requests_per_minute),
        key_burst=burst(caller.key_requests_per_minute),
        concurrency=_or_unlimited(envelope.concurrency),
        free_hangups=free_hangups(plan.quota_per_day),
        pack_fares=caller.pack_fares if plan.queue.beyond_quota == "pack" else NO_PACKS,
        pack_fares_per_month=_or_unlimited(caller.pack_fares_per_month),
    )


def beyond(limits: Numbers, fare: int) -> Numbers | None:
    """The limits of a call on the slow lane: it is held at no fare, past the plan's quota but not past the key's own cap, which
    has to have room for what the call would cost. None: it never has."""
    if limits.key_quota < 0:
        return replace(limits, quota=UNLIMITED)
    if limits.key_quota < fare:
        return None
    return replace(limits, quota=UNLIMITED, key_quota=limits.key_quota - fare)


def burst(per_minute: int | None) -> int:
    """A minute's worth: who was quiet may send "10 a minute" at once, then one every 6 s.

    It is what the words promise a client that counts by the minute; how many run at once is the concurrency limit's to say.
    """
    return 1 if per_minute is None else max(1, per_minute)


def _or_unlimited(limit: int | None) -> int:
    return UNLIMITED if limit is None else limit
