"""What one gateway itself knows of a model pool: its running calls, its waiters, and who else is there."""

import asyncio
from collections import Counter
from typing import Protocol

from backends.slots import pool_keys


class Waiter(Protocol):
    def wake(self) -> None: ...


class Pool:
    """The local side of a pool. Valkey has the truth for all gateways; this has what must survive Valkey's loss."""

    def __init__(self, name: str, gateway: str, now: float) -> None:
        self.name = name
        self.peers: tuple[str, ...] = ()
        self.meets((gateway,))
        self.running: dict[str, str] = {}  # request -> replica
        self.waiting: dict[str, Waiter] = {}
        self.load: Counter[str] = Counter()  # replica -> calls of this gateway running there
        self.leased_until = 0.0
        self.refused_until = 0.0
        self.used_at = now
        self.popper: asyncio.Task[None] | None = None

    def meets(self, peers: tuple[str, ...]) -> None:
        """The gateways that live, our own among them; what every script is given follows from them."""
        if peers != self.peers:
            self.peers = peers
            self.keys = pool_keys(self.name, peers)
            self.names = " ".join(peers)

    def runs(self, request: str, replica: str) -> None:
        if request not in self.running:
            self.running[request] = replica
            self.load[replica] += 1

    def left(self, request: str) -> None:
        self.waiting.pop(request, None)
        replica = self.running.pop(request, None)
        if replica is not None:
            self.load[replica] -= 1
            self.refused_until = 0.0

    def is_idle(self, now: float, seconds: float) -> bool:
        return not self.running and not self.waiting and now - self.used_at > seconds

    def known(self) -> list[str]:
        """What sweep.lua takes: how many run, request and replica of each, then the waiting requests."""
        pairs = [word for pair in self.running.items() for word in pair]
        return [str(len(self.running)), *pairs, *self.waiting]
