"""Why a call may not run now: what the gate raises, as nouns."""

from dataclasses import dataclass
from typing import Literal

Scope = Literal["account", "key"]


@dataclass(frozen=True, slots=True)
class PacksUsed:
    """How far an account's packs are used, in fares. `per_month` is its own cap, -1 without one."""

    bought: int
    used: int
    per_month: int
    used_this_month: int

    @property
    def left(self) -> int:
        return max(0, self.bought - self.used)

    def pay(self, fare: int) -> bool:
        """Whether they would pay for a call; whole, or not at all."""
        return fare <= self.left and (self.left_this_month is None or fare <= self.left_this_month)

    @property
    def left_this_month(self) -> int | None:
        """Of the cap; None without one."""
        return None if self.per_month < 0 else max(0, self.per_month - self.used_this_month)


class QuotaUsedUp(Exception):
    """The day's fares are spent, by the account or by the key's own cap, and no pack paid. Nothing was taken.

    `packs` is None where the plan does not go on with packs, or the key's own cap is what is spent.
    """

    def __init__(self, scope: Scope, limit: int, used: int, resets_at_ms: int, packs: PacksUsed | None = None) -> None:
        super().__init__(f"the {scope}'s {limit} fares of the day are used ({used})")
        self.scope, self.limit, self.used, self.resets_at_ms, self.packs = scope, limit, used, resets_at_ms, packs


class RateExceeded(Exception):
    """Too many calls a minute; the next one passes in `retry_after_ms`."""

    def __init__(self, scope: Scope, limit: int, retry_after_ms: int) -> None:
        super().__init__(f"the {scope} may call {limit} times a minute; next in {retry_after_ms} ms")
        self.scope, self.limit, self.retry_after_ms = scope, limit, retry_after_ms


class TooManyOpenCalls(Exception):
    """As many calls are open as the plan allows at once."""

    def __init__(self, limit: int, open_calls: int) -> None:
        super().__init__(f"{open_calls} calls are open, {limit} may be")
        self.limit, self.open = limit, open_calls


class SnapshotStale(Exception):
    """Account or key changed since the caller was read: read it again and ask once more."""


class GateClosed(Exception):
    """Nothing can be admitted for a moment (Valkey away or just back, counters unknown, too much unsettled)."""

    def __init__(self, why: str, retry_after_ms: int = 1000) -> None:
        super().__init__(why)
        self.why, self.retry_after_ms = why, retry_after_ms


class IdempotencyKeyInUse(Exception):
    """A call with this idempotency key runs: its answer is on the way."""


class IdempotencyKeyReused(Exception):
    """The idempotency key belongs to a call with another body."""
