"""Who is next in a pool's line, and whom to ask back for it: the order as pure decisions over plain values."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from backends.classes import CLASSES, Classes

HALF_LIFE = 60_000
CLASS_STEP = 100_000_000
RANKS = range(len(CLASSES))
SCAN, DEEP, NEAR, NEAR_SHARE, NEAR_TOKENS = 32, 8, 8, 1.1, 256
AGED_MS, RECALL_AFTER_MS, RECALL_LASTS_MS = 10_000, 200, 1_000
RETURNS_MAX = 2

Flow = tuple[int, str]
"""Class and account: whose turn it is inside a class."""


@dataclass
class Held:
    replica: str
    gateway: str
    since: int
    rank: int
    account: str
    estimate: int = 0
    returned: int = 0
    arrival: int = 0
    asked: int = 0
    is_claimed: bool = True
    is_awaited: bool = False  # its gateway was asked, and has not answered

    @property
    def may_be_asked(self) -> bool:
        return self.asked == 0 and self.returned < RETURNS_MAX


@dataclass
class Place:
    gateway: str
    rank: int
    account: str
    arrival: int
    estimate: int
    returned: int
    replicas: list[str]
    at_head: bool = False

    @property
    def flow(self) -> Flow:
        return self.rank, self.account


def charged(level: float | None, amount: int, at: int) -> float | None:
    """The level of an account's work, log2(work x 2^(t / half-life)), after `amount` tokens more (or less) at `at`."""
    if amount == 0:
        return level
    added = at / HALF_LIFE + math.log(abs(amount)) / math.log(2)
    if amount > 0:
        high, low = max(added, level or -math.inf), min(added, level or -math.inf)
        return high + math.log(1 + 2 ** (low - high)) / math.log(2)
    if level is None or added >= level:
        return None
    return level + math.log(1 - 2 ** (added - level)) / math.log(2)


def kept_from(classes: Classes, rank: int, slots: int) -> int:
    """What the classes above keep free; a pool's last slot is kept for nobody."""
    return min(classes.kept_from(CLASSES[rank]), slots - 1)


def replica_for(place: Place, room: dict[str, int], kept: int) -> str | None:
    """Its first with room, when more is free in the pool than is kept for classes above."""
    if sum(room.values()) <= kept:
        return None
    return next((name for name in place.replicas if room.get(name, 0) > 0), None)


@dataclass
class Line:
    """Everything that the next grant depends on. `drop` is called for waiters of dead gateways that are met on the way."""

    now: int
    classes: Classes
    waiting: dict[str, Place]
    scores: dict[Flow, float]
    running: list[int]
    room: dict[str, int]
    slots: int
    credits: list[int]
    is_alive: Callable[[str], bool]
    drop: Callable[[str], None]
    depths: list[int] = field(init=False)

    def __post_init__(self) -> None:
        counts = Counter(place.rank for place in self.waiting.values())
        self.depths = [counts[rank] for rank in RANKS]

    def next_up(self) -> tuple[str, str, bool] | None:
        """Request, replica, and whether it was the floor of its class that gave it the turn."""
        for rank in RANKS:
            if self.depths[rank] and self.credits[rank] >= 100 and (found := self._first_of(rank, 0)):
                return *found, True
        for rank in RANKS:
            share = self.classes.rules(CLASSES[rank]).share_percent
            if share < 100 and any(self.depths[:rank]) and sum(self.running[rank:]) >= max(1, share * self.slots // 100):
                return None
            kept = kept_from(self.classes, rank, self.slots)
            if self.depths[rank] and sum(self.room.values()) > kept and (found := self._first_of(rank, kept)):
                return *found, False
        return None

    def count_turn(self, rank: int, was_due: bool) -> None:
        """A class that waits below its floor earns its share of each grant that goes elsewhere."""
        if was_due:
            self.credits[rank] -= 100
        for other in RANKS:
            floor = self.classes.rules(CLASSES[other]).floor_percent
            if other != rank and self.depths[other] and self.running[other] * 100 < floor * self.slots:
                self.credits[other] = min(100, self.credits[other] + floor)

    def _first_of(self, rank: int, kept: int) -> tuple[str, str] | None:
        heads = self._in_order(lambda place: place.rank == rank and place.at_head)
        looks, found = self._first_usable(heads, kept, SCAN)
        if found:
            return found
        limit = math.inf
        best: tuple[tuple[bool, bool, int], str, str] | None = None
        flows = sorted((flow for flow in self.scores if flow[0] == rank), key=lambda flow: (self.scores[flow], flow))
        for looked_at, flow in enumerate(flows[:SCAN]):
            work = 2 ** (self.scores[flow] - rank * CLASS_STEP - self.now / HALF_LIFE)
            if not looks or (best and (work > limit or looked_at >= NEAR)):
                break
            own = self._in_order(lambda place, flow=flow: place.flow == flow and not place.at_head)  # type: ignore[misc]
            looks, found = self._first_usable(own[:DEEP], kept, looks)
            if found:
                limit = min(limit, max(work * NEAR_SHARE, work + NEAR_TOKENS))
                candidate = (self._sooner(*found), *found)
                best = candidate if best is None or candidate[0] < best[0] else best
        return best and (best[1], best[2])

    def _first_usable(self, requests: list[str], kept: int, looks: int) -> tuple[int, tuple[str, str] | None]:
        """And how many more may be looked at. Waiters of dead gateways are dropped on the way."""
        for request in requests[:looks]:
            looks -= 1
            if not self.is_alive(self.waiting[request].gateway):
                self.depths[self.waiting[request].rank] -= 1
                self.drop(request)
            elif replica := replica_for(self.waiting[request], self.room, kept):
                return looks, (request, replica)
        return looks, None

    def _sooner(self, request: str, replica: str) -> tuple[bool, bool, int]:
        place = self.waiting[request]
        is_aged = place.arrival + AGED_MS <= self.now
        return not is_aged, not is_aged and replica != place.replicas[0], place.arrival

    def _in_order(self, wanted: Callable[[Place], bool]) -> list[str]:
        found = [request for request, place in self.waiting.items() if wanted(place)]
        return sorted(found, key=lambda request: (self.waiting[request].arrival, request))


def to_ask_back(now: int, waiting: dict[str, Place], slots: dict[str, Held]) -> list[str]:
    """Calls whose slots are asked back now: for each waiter that has stood a moment, the newest of the lowest class below it."""
    needed, found = 0, list[str]()
    if not any(held.may_be_asked for held in slots.values()):
        return found
    asked = sum(held.is_awaited and held.asked >= now - RECALL_LASTS_MS for held in slots.values())
    for rank in RANKS[:-1]:
        stood = {r: place for r, place in waiting.items() if place.rank == rank and place.arrival + RECALL_AFTER_MS <= now}
        needed += len(stood)
        while stood and asked + len(found) < needed:
            oldest = stood[min(stood, key=lambda request: (stood[request].arrival, request))]
            newest = _newest_below(rank, oldest, {r: held for r, held in slots.items() if held.may_be_asked and r not in found})
            if newest is None:
                break
            found.append(newest)
    return found


def _newest_below(rank: int, waiter: Place, running: dict[str, Held]) -> str | None:
    for lower in range(len(CLASSES) - 1, rank, -1):
        own = sorted((held.since, request) for request, held in running.items() if held.rank == lower)
        for _, request in own[: -NEAR - 1 : -1]:
            if running[request].replica in waiter.replicas:
                return request
    return None
