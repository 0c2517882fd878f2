"""What the scripts of a pool must do, as plain Python over plain dictionaries."""

from dataclasses import dataclass, field, replace

from backends.classes import CLASSES, DEFAULT_CLASSES, Classes
from tests.backends.queue.order import (
    CLASS_STEP,
    HALF_LIFE,
    RANKS,
    Flow,
    Held,
    Line,
    Place,
    charged,
    kept_from,
    replica_for,
    to_ask_back,
)

GRACE_MS = CLAIM_MS = 2000
CAPS_TTL_MS = 5000
CLAIMED_BY_MS = 250


@dataclass
class Asked:
    """What an acquire brings."""

    request: str
    gateway: str
    rank: int
    account: str
    preference: list[tuple[str, int]]
    estimate: int = 0
    returned: int = 0
    arrival: int = 0
    depth_max: int = 1000

    @property
    def replicas(self) -> list[str]:
        return [name for name, _ in self.preference]


@dataclass
class PoolModel:
    """The clock is moved by the test; a tombstone's 30 s are the server's own, longer than any test."""

    now: int = 0
    classes: Classes = DEFAULT_CLASSES
    slots: dict[str, Held] = field(default_factory=dict)
    line: dict[str, Place] = field(default_factory=dict)
    caps: dict[str, tuple[int, int]] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    levels: dict[Flow, float] = field(default_factory=dict)
    scores: dict[Flow, float] = field(default_factory=dict)
    credits: list[int] = field(default_factory=lambda: [0] * len(CLASSES))
    gone: set[str] = field(default_factory=set)
    told: list[tuple[str, str]] = field(default_factory=list)
    is_served: bool = True  # since gateways were last found alive, what was free went to those who wait
    compared: int = 0  # how much of `told` the scripts were seen to have told too

    def in_use(self, replica: str) -> int:
        return sum(held.replica == replica for held in self.slots.values())

    def alive(self, gateway: str) -> bool:
        return self.leases.get(gateway, -1) > self.now

    def lease(self, gateway: str, ttl: int) -> set[str]:
        self.is_served = self.is_served and self.alive(gateway)
        self.leases[gateway] = self.now + ttl
        return {name for name in self.leases if self.alive(name)}

    def unclaimed(self, gateway: str) -> set[str]:
        """Grants whose wake-ups were lost."""
        late = self.now - CLAIMED_BY_MS
        return {r for r, held in self.slots.items() if held.gateway == gateway and not held.is_claimed and held.since <= late}

    def try_now(self, asked: Asked) -> str:
        if refused := self._refused(asked):
            return refused
        room = {name: max(0, cap - self.in_use(name)) for name, cap in asked.preference}
        place = self._place(asked)
        kept = kept_from(self.classes, asked.rank, sum(cap for _, cap in asked.preference))
        replica = replica_for(place, room, kept)
        if asked.request in self.slots:
            return "held " + self.slots[asked.request].replica
        if self.line or replica is None:
            return "busy"
        self._take(asked.request, replica, replace(place, estimate=0))
        return "held " + replica

    def acquire(self, asked: Asked) -> str:
        if refused := self._refused(asked):
            return refused
        request, place = asked.request, self._place(asked)
        held = self.slots.get(request)
        if held and held.returned >= asked.returned:
            held.is_claimed = True
            return "held " + held.replica
        if held:
            self._free(request, 0)
            place.at_head, place.arrival = True, place.arrival or held.since
        self.caps.update({name: (cap, self.now) for name, cap in asked.preference})
        was_known = request in self.line
        if was_known:
            place = self.line[request]
            place.gateway, place.replicas = asked.gateway, asked.replicas
        elif place.at_head:
            self._stand(request, place)
        self._serve()
        if request in self.slots:
            self.slots[request].is_claimed = True
            return "held " + self.slots[request].replica
        if not was_known and not place.at_head and (said := self._enter(request, place, asked.depth_max)):
            return said
        self._ask_back()
        return "waits"

    def _enter(self, request: str, place: Place, depth_max: int) -> str | None:
        """Straight through, or into the line; what is said when it is not the line."""
        room, slots = self._room()
        replica = replica_for(place, room, kept_from(self.classes, place.rank, slots))
        if replica:
            self._take(request, replica, place)
            self._charge(place.flow, place.estimate, self.now)
            return "held " + replica
        accounts = {flow for flow in self.scores if flow[0] == place.rank} | {place.flow}
        own = sum(other.flow == place.flow and not other.at_head for other in self.line.values())
        if sum(other.rank == place.rank for other in self.line.values()) >= depth_max and own >= depth_max // len(accounts):
            return "full"
        place.arrival = place.arrival or self.now
        self._stand(request, place)
        return None

    def release(self, request: str, unsure: bool, worked: int) -> int:
        held, found = self.slots.get(request), request in self.slots or request in self.line
        if held:
            self._free(request, None if worked < 0 else worked)
        elif found:
            self._leave(request)
        if not found or unsure:
            self.gone.add(request)
        self._serve()
        return int(found)

    def keep(self, request: str) -> None:
        if request in self.slots:
            self.slots[request].is_awaited = False
        self._ask_back()

    def sweep(self, gateway: str, running: dict[str, Held]) -> None:
        for request, held in running.items():
            if request not in self.slots:
                if request in self.line:
                    self._leave(request)
                self.slots[request] = replace(held, since=self.now, arrival=0, asked=0, is_awaited=False, is_claimed=True)
        for request in sorted(self.slots, key=lambda request: (self.slots[request].since, request)):
            held = self.slots[request]
            if not held.is_claimed and held.since + CLAIM_MS < self.now and self.alive(held.gateway):
                self._free(request, 0)
                arguments = (held.gateway, held.rank, held.account, held.arrival, held.estimate, held.returned, [held.replica])
                self._stand(request, Place(*arguments, at_head=True))
        for request, held in list(self.slots.items()):
            is_ours_unknown = held.gateway == gateway and request not in running and held.since + GRACE_MS < self.now
            if is_ours_unknown or not self.alive(held.gateway):
                self._free(request, None)
        for request in [request for request, place in self.line.items() if not self.alive(place.gateway)]:
            self._leave(request)
        self.caps = {name: (cap, at) for name, (cap, at) in self.caps.items() if at + CAPS_TTL_MS >= self.now}
        self.leases = {name: expiry for name, expiry in self.leases.items() if expiry > self.now}
        self.levels = {flow: level for flow, level in self.levels.items() if level > self.now / HALF_LIFE}
        self._serve()

    def forget(self) -> None:
        """As after a flush."""
        for kept in (self.slots, self.line, self.caps, self.leases, self.levels, self.scores, self.gone):
            kept.clear()
        self.credits[:] = [0] * len(CLASSES)

    def take_told(self) -> list[tuple[str, str]]:
        taken, self.told, self.compared = self.told, [], 0
        return taken

    def in_order(self) -> list[str]:
        return sorted(self.line, key=lambda request: (self.line[request].rank, self.line[request].arrival, request))

    def _refused(self, asked: Asked) -> str | None:
        if asked.request in self.gone:
            return "gone"
        return None if self.alive(asked.gateway) else "lease"

    def _place(self, asked: Asked) -> Place:
        return Place(asked.gateway, asked.rank, asked.account, asked.arrival, asked.estimate, asked.returned, asked.replicas)

    def _take(self, request: str, replica: str, place: Place, *, is_claimed: bool = True) -> None:
        self.slots[request] = Held(
            replica, place.gateway, self.now, place.rank, place.account, place.estimate, place.returned, place.arrival,
            is_claimed=is_claimed,
        )  # fmt: skip

    def _free(self, request: str, worked: int | None) -> None:
        held = self.slots.pop(request)
        if worked is not None:
            self._charge((held.rank, held.account), worked - held.estimate, held.since)

    def _charge(self, flow: Flow, amount: int, at: int) -> None:
        if amount == 0:
            return
        level = charged(self.levels.get(flow), amount, at)
        if level is None:
            self.levels.pop(flow, None)
        else:
            self.levels[flow] = level
        if flow in self.scores:
            self.scores[flow] = flow[0] * CLASS_STEP + (level or 0)

    def _stand(self, request: str, place: Place) -> None:
        """Into the line. An account that was not in it starts no lower than the least of those of its class that are."""
        self.line[request] = place
        flow, base = place.flow, place.rank * CLASS_STEP
        if place.at_head or flow in self.scores:
            return
        others = [score - base for (rank, _), score in self.scores.items() if rank == place.rank]
        if others and min(others) > self.levels.get(flow, 0):
            self.levels[flow] = min(others)
        self.scores[flow] = 0
        self._charge(flow, 1, self.now)

    def _leave(self, request: str) -> None:
        flow = self.line.pop(request).flow
        if not any(place.flow == flow and not place.at_head for place in self.line.values()):
            self.scores.pop(flow, None)

    def _room(self) -> tuple[dict[str, int], int]:
        caps = {name: cap for name, (cap, at) in self.caps.items() if at + CAPS_TTL_MS >= self.now}
        return {name: max(0, cap - self.in_use(name)) for name, cap in caps.items()}, sum(caps.values())

    def _serve(self) -> None:
        self.is_served = True
        room, slots = self._room()
        if not any(room.values()):
            return
        line = Line(
            self.now, self.classes, self.line, self.scores, [0] * len(CLASSES), room, slots, self.credits, self.alive, self._leave
        )
        while any(room.values()):
            line.running = [sum(held.rank == rank for held in self.slots.values()) for rank in RANKS]
            found = line.next_up()
            if found is None:
                return
            request, replica, was_due = found
            place = self.line[request]
            self._leave(request)
            self._take(request, replica, place, is_claimed=False)
            self._charge(place.flow, place.estimate, self.now)
            self.told.append((place.gateway, f"grant {request} {replica}"))
            room[replica] -= 1
            line.depths[place.rank] -= 1
            line.running[place.rank] += 1
            line.count_turn(place.rank, was_due)

    def _ask_back(self) -> None:
        for request in to_ask_back(self.now, self.line, self.slots):
            held = self.slots[request]
            held.asked, held.is_awaited = self.now, True
            self.told.append((held.gateway, f"recall {request}"))
