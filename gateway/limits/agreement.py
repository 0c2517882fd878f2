"""Whether live counters are what the rows, the events on their way and the open holds add up to; pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from billing.day_sums import DaySums

What = Literal["fares", "hang-ups", "open calls", "fares of packs"]


class Counted(NamedTuple):
    """An account's or a key's hash: the nonce it was written under, the day it was seeded on, calls open, fares of packs ever
    used, and by day fares and hang-ups. None: there is no such field."""

    nonce: str | None
    seeded: int | None
    open: int | None
    packs: int | None
    fares: Mapping[int, int | None]
    hangups: Mapping[int, int | None]


class Held(NamedTuple):
    """An open hold that counts under the nonce that was read."""

    account: str
    key: str
    day: int
    fare: int
    from_pack: bool


class Ended(NamedTuple):
    """An event that the rows may not have yet."""

    id: str
    account: str
    key: str
    day: int
    fares: int
    from_pack: bool
    is_hangup: bool


@dataclass(frozen=True, slots=True)
class Live:
    """What one read of a shard found, all of it of one moment."""

    nonce: str
    accounts: Mapping[str, Counted]
    keys: Mapping[str, Counted]
    holds: Sequence[Held]
    events: Sequence[Ended]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A counter of an account, or of one of its keys, that is not the sum of the other three. `day` is None for what is of no
    day: open calls, fares of packs."""

    account: str
    key: str | None
    day: int | None
    what: What
    counted: int
    recorded: int
    on_the_way: int
    held: int

    @property
    def expected(self) -> int:
        return self.recorded + self.on_the_way + self.held


def disagreements(
    live: Live, recorded: DaySums, known: Collection[str], *, owners: Mapping[str, str], days: Sequence[int]
) -> Iterator[Disagreement]:
    """`known` are ids that have a row; `owners` are the accounts of the keys. Counters of another memory say nothing."""
    sums = _Sums(live, recorded, known)
    for account, counted in live.accounts.items():
        if counted.nonce != live.nonce:
            continue
        for day in days:
            yield from _fares(counted, account, None, day, sums)
            if counted.fares[day] is not None:
                yield from _differing(account, None, day, "hang-ups", (counted.hangups[day] or 0, *sums.hangups(account, day)))
        if counted.packs is not None:
            yield from _differing(account, None, None, "fares of packs", (counted.packs, *sums.packs(account)))
        if any(_is_known(counted, day) for day in days):
            yield from _differing(account, None, None, "open calls", (counted.open or 0, 0, 0, sums.open[account]))
    for key, counted in live.keys.items():
        if counted.nonce == live.nonce:
            for day in days:
                yield from _fares(counted, owners[key], key, day, sums)


class _Sums:
    """The three parts of what a counter should be. Of several events with one id the first counts, as it does in the ledger."""

    def __init__(self, live: Live, recorded: DaySums, known: Collection[str]) -> None:
        # By account or key and day; by account and None, fares of packs of all days.
        self.recorded: Counter[tuple[str, int | None]] = Counter()
        self.on_the_way: Counter[tuple[str, int | None]] = Counter()
        self.held: Counter[tuple[str, int | None]] = Counter()
        self.hangups_recorded: Counter[tuple[str, int]] = Counter()
        self.hangups_on_the_way: Counter[tuple[str, int]] = Counter()
        self.open = Counter(hold.account for hold in live.holds)
        for account, fares in recorded.packs.items():
            self.recorded[account, None] = fares
        for row in recorded.days:
            self.hangups_recorded[row.account, row.day] += row.hangups
            self.recorded[row.account, row.day] += row.fares
            self.recorded[row.key, row.day] += row.fares + row.pack_fares
        for event in {event.id: event for event in reversed(live.events)}.values():
            if event.id in known:
                continue
            self.hangups_on_the_way[event.account, event.day] += event.is_hangup
            self.on_the_way[event.account, None if event.from_pack else event.day] += event.fares
            self.on_the_way[event.key, event.day] += event.fares
        for hold in live.holds:
            self.held[hold.account, None if hold.from_pack else hold.day] += hold.fare
            self.held[hold.key, hold.day] += hold.fare

    def fares(self, name: str, day: int | None) -> tuple[int, int, int]:
        return self.recorded[name, day], self.on_the_way[name, day], self.held[name, day]

    def packs(self, account: str) -> tuple[int, int, int]:
        return self.fares(account, None)

    def hangups(self, account: str, day: int) -> tuple[int, int, int]:
        return self.hangups_recorded[account, day], self.hangups_on_the_way[account, day], 0


def _fares(counted: Counted, account: str, key: str | None, day: int, sums: _Sums) -> Iterator[Disagreement]:
    if _is_known(counted, day):
        yield from _differing(account, key, day, "fares", (counted.fares[day] or 0, *sums.fares(key or account, day)))


def _differing(
    account: str, key: str | None, day: int | None, what: What, numbers: tuple[int, int, int, int]
) -> Iterator[Disagreement]:
    counted, *parts = numbers
    if counted != sum(parts):
        yield Disagreement(account, key, day, what, *numbers)


def _is_known(counted: Counted, day: int) -> bool:
    """The same rule as in admit.lua: a day without a counter is 0 only when it is younger than the day it was seeded on."""
    return counted.fares[day] is not None or (counted.seeded is not None and day > counted.seeded)
