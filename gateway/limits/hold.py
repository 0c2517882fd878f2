"""A held fare: it is settled by leaving its `with` block, whatever the way out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import orjson

from billing.days import month_number
from gateway.clock import DAY_MS
from gateway.limits.policy import Numbers

# The parts of a packed hold; one more, the month, where a pack pays.
PLAIN_HOLD = 9


@dataclass(slots=True)
class Ask:
    """One call that wants to run: who, for how many fares, under which limits. The id decides the day charged.

    `from_pack` is found out when it is admitted: the day's quota had no room for it, and the account's packs pay.
    """

    request_id: str
    account: str
    key: str
    version: int
    fare: int
    numbers: Numbers
    model: str
    endpoint: str
    stream: bool
    at_ms: int = field(init=False)
    day: int = field(init=False)
    from_pack: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.at_ms = int(self.request_id[:8] + self.request_id[9:13], 16)  # UUIDv7, RFC 9562
        self.day = self.at_ms // DAY_MS

    def packed(self, nonce: str) -> bytes:
        """What Valkey keeps of the hold, enough to settle it when its gateway is gone."""
        hold = [self.account, self.key, self.day, self.fare, self.model, self.endpoint, int(self.stream), self.at_ms, nonce]
        return orjson.dumps([*hold, self.month] if self.from_pack else hold)

    @property
    def month(self) -> int:
        """Whose cap of packs it counts in."""
        return month_number(self.day)


class Hold:
    """`with hold:` settles on the way out: as `settle` marked it, else voided. Nothing is awaited."""

    __slots__ = ("_close", "account", "ask", "at_ms", "day", "endpoint", "fare", "key", "limit", "mark", "model", "pack_left",
                 "remaining", "request_id", "resets_at_ms", "used")  # fmt: skip

    def __init__(self, ask: Ask, used: int, key_used: int, pack_used: int = 0, *, close: "Callable[[Hold], None]") -> None:
        self.ask = ask
        self.pack_left = max(0, ask.numbers.pack_fares - pack_used) if ask.from_pack else None
        self.request_id, self.account, self.key = ask.request_id, ask.account, ask.key
        self.model, self.endpoint, self.fare = ask.model, ask.endpoint, ask.fare
        self.at_ms, self.day = ask.at_ms, ask.day
        self.resets_at_ms = (self.day + 1) * DAY_MS
        self.limit, self.used = _tighter(ask.numbers, used, key_used)
        self.remaining = -1 if self.limit < 0 else max(0, self.limit - self.used)
        self.mark: tuple[str, str, bytes] | None = None
        self._close = close

    def settle(self, verdict: str, reason: str, event: bytes) -> None:
        """How the call ended. The first mark stands: a call ends once."""
        if self.mark is None:
            self.mark = (verdict, reason, event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close(self)


def _tighter(numbers: Numbers, used: int, key_used: int) -> tuple[int, int]:
    """The daily limit that ends first, the account's or the key's, and what is used of it; -1 when there is none."""
    if numbers.key_quota >= 0 and (numbers.quota < 0 or numbers.key_quota - key_used < numbers.quota - used):
        return numbers.key_quota, key_used
    return numbers.quota, used
