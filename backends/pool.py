"""What one gateway itself knows of a model pool: its running calls, its waiters, and who else is there."""

import asyncio
from collections import Counter
from typing import Protocol

from backends.slots import pool_keys, try_keys

# How much one call counts in the mean time that a call holds a slot.
HELD_WEIGHT = 0.1


class Call(Protocol):
    """What a pool needs of a slot."""

    replica: str | None
    request: str
    class_: str
    position: int | None
    expected_seconds: float | None

    def wake(self) -> None: ...
    def recall(self) -> None: ...
    def running_record(self) -> str: ...


class Pool:
    """The local side of a pool. Valkey has the truth for all gateways; this has what must survive Valkey's loss."""

    def __init__(self, name: str, gateway: str, now: float) -> None:
        self.name = name
        self.peers: tuple[str, ...] = ()
        self.meets((gateway,))
        self.try_keys = try_keys(name)
        self.running: dict[str, tuple[Call, str, float]] = {}  # request -> call, replica, since
        self.waiting: dict[str, Call] = {}
        self.load: Counter[str] = Counter()  # replica -> calls of this gateway running there
        self.held_seconds = 0.0  # how long a call holds a slot, lately; 0: not known
        self.leased_until = 0.0
        self.refused_until = 0.0
        self.contended_at = float("-inf")  # when anybody was last heard to wait
        self.used_at = now
        self.cursor = "0"  # where the next sweep looks on
        self.popper: asyncio.Task[None] | None = None

    def meets(self, peers: tuple[str, ...]) -> None:
        """The gateways that live, our own among them; what every script is given follows from them."""
        if peers != self.peers:
            self.peers = peers
            self.keys = pool_keys(self.name, peers)
            self.names = " ".join(peers)

    def runs(self, call: Call, now: float) -> None:
        if call.request not in self.running and call.replica is not None:
            self.running[call.request] = (call, call.replica, now)
            self.load[call.replica] += 1

    def left(self, call: Call) -> None:
        self.waiting.pop(call.request, None)
        ran = self.running.pop(call.request, None)
        if ran is not None:
            _, replica, since = ran
            self.load[replica] -= 1
            self.refused_until = 0.0
            held = asyncio.get_running_loop().time() - since
            self.held_seconds += (held - self.held_seconds) * (HELD_WEIGHT if self.held_seconds else 1.0)

    def is_idle(self, now: float, seconds: float) -> bool:
        return not self.running and not self.waiting and now - self.used_at > seconds

    def is_contended(self, now: float, seconds: float) -> bool:
        """Somebody waits, here or lately elsewhere: calls that run here may be asked back."""
        return bool(self.waiting) or now - self.contended_at < seconds

    def known(self) -> list[str]:
        """What sweep.lua takes: where to look on, then of each running call its id and what its slot is made of."""
        return [self.cursor, *(word for request, ran in self.running.items() for word in (request, ran[0].running_record()))]
