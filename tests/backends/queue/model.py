"""What the scripts of a pool must do, as plain Python over plain dictionaries."""

from dataclasses import dataclass, field

GRACE_MS = 2000


@dataclass
class Slot:
    replica: str
    gateway: str
    since: int


@dataclass
class Place:
    arrival: int
    gateway: str
    preference: list[str]


@dataclass
class PoolModel:
    """The clock is moved by the test; a tombstone's 30 s are the server's own, longer than any test."""

    now: int = 0
    slots: dict[str, Slot] = field(default_factory=dict)
    line: dict[str, Place] = field(default_factory=dict)
    caps: dict[str, int] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    woken: list[tuple[str, str]] = field(default_factory=list)

    def in_use(self, replica: str) -> int:
        return sum(slot.replica == replica for slot in self.slots.values())

    def alive(self, gateway: str) -> bool:
        return self.leases.get(gateway, -1) > self.now

    def lease(self, gateway: str, ttl: int) -> set[str]:
        self.leases[gateway] = self.now + ttl
        return {name for name in self.leases if self.alive(name)}

    def acquire(self, request: str, gateway: str, preference: list[tuple[str, int]], may_wait: bool, depth_max: int) -> str:
        if request in self.gone:
            return "gone"
        if not self.alive(gateway):
            return "lease"
        if request in self.slots:
            return "held " + self.slots[request].replica
        self.caps.update(preference)
        if request in self.line:
            self.line[request].gateway = gateway
            self.line[request].preference = [name for name, _ in preference]
        self._serve()
        if request in self.slots:
            return "held " + self.slots[request].replica
        for name, _ in preference:
            if self._has_room(name):
                self.line.pop(request, None)
                self.slots[request] = Slot(name, gateway, self.now)
                return "held " + name
        if request in self.line:
            return "waits"
        if not may_wait:
            return "busy"
        return "full" if len(self.line) >= depth_max else "waits"

    def stands_in_line(self, request: str, gateway: str, preference: list[tuple[str, int]], arrival: int) -> None:
        self.line.setdefault(request, Place(arrival, gateway, [name for name, _ in preference]))

    def release(self, request: str, unsure: bool) -> int:
        found = request in self.slots or request in self.line
        self.slots.pop(request, None)
        self.line.pop(request, None)
        if not found or unsure:
            self.gone.add(request)
        self._serve()
        return int(found)

    def sweep(self, gateway: str, running: dict[str, str], waiting: set[str]) -> None:
        for request, replica in running.items():
            if request not in self.slots:
                self.slots[request] = Slot(replica, gateway, self.now)
                self.line.pop(request, None)
        known = running.keys() | waiting
        self.slots = {r: s for r, s in self.slots.items() if not self._is_stray(r, s.gateway, gateway, known, s.since)}
        self.line = {r: p for r, p in self.line.items() if not self._is_stray(r, p.gateway, gateway, known, p.arrival)}
        self.leases = {name: expiry for name, expiry in self.leases.items() if expiry > self.now}
        self._serve()

    def in_order(self) -> list[str]:
        return sorted(self.line, key=lambda request: (self.line[request].arrival, request))

    def _is_stray(self, request: str, owner: str, gateway: str, known: set[str], since: int) -> bool:
        return not self.alive(owner) or (owner == gateway and request not in known and since + GRACE_MS < self.now)

    def _has_room(self, replica: str) -> bool:
        return self.in_use(replica) < self.caps.get(replica, 0)

    def _serve(self) -> None:
        if not any(map(self._has_room, self.caps)):
            return
        for request in self.in_order():
            place = self.line[request]
            if not self.alive(place.gateway):
                del self.line[request]
            else:
                free = next(filter(self._has_room, place.preference), None)
                if free is not None:
                    del self.line[request]
                    self.slots[request] = Slot(free, place.gateway, self.now)
                    self.woken.append((place.gateway, request))
            if not any(map(self._has_room, self.caps)):
                return
