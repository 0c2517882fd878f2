"""The whole world of the hold protocol, small enough to be hashed: gateways, Valkey's memory, the ledger, the worker."""

from typing import NamedTuple

# A gateway. Away: says nothing to Valkey for a while, because it is frozen or cut off; it may go on with its calls or not.
UP, AWAY, DEAD = "up", "away", "dead"
# A call, as its gateway sees it.
NEW, HELD, OVER, REFUSED = "new", "held", "over", "refused"
POSTED, VOIDED, EXPIRED = "posted", "voided", "expired"

Position = tuple[int, int]
"""(nonce, stream id)"""
NOWHERE: Position = (0, 0)


class Event(NamedTuple):
    id: int
    call: int
    verdict: str


class Memory(NamedTuple):
    """What Valkey has of one shard with one account; all calls cost one fare of one day."""

    run: int = 1  # the server's run id, as the epoch wrote it down
    nonce: int = 1  # 0: no epoch is open
    is_ready: bool = True  # the opening second is over
    counted: int = 1  # the nonce under which the counter was written; another one: cold
    used: int = 0
    holds: tuple[tuple[int, int], ...] = ()  # (call, nonce), in order
    tombs: frozenset[int] = frozenset()
    stream: tuple[Event, ...] = ()
    leases: frozenset[int] = frozenset()
    watermark: Position = NOWHERE

    @property
    def is_warm(self) -> bool:
        return self.counted == self.nonce != 0

    def hold_of(self, call: int) -> int | None:
        """The nonce it was made under."""
        return dict(self.holds).get(call)

    def with_hold(self, call: int, nonce: int) -> "Memory":
        return self._replace(holds=tuple(sorted({**dict(self.holds), call: nonce}.items())))

    def without_hold(self, call: int) -> "Memory":
        return self._replace(holds=tuple(hold for hold in self.holds if hold[0] != call))


class Call(NamedTuple):
    gateway: int
    stage: str = NEW
    is_delivered: bool = False  # the client has the whole answer
    was_admitted: bool = False
    ending: str | None = None  # the verdict in the gateway's outbox
    acked: Position | None = None
    is_kept: bool = True  # False: the watermark has passed it, or its gateway is dead
    late_admit: int = 0  # the nonce of an admit that is still on its way, over a connection that was given up


class Rebuild(NamedTuple):
    """A cold counter's rebuild after it has read the stream, before it has read the ledger."""

    nonce: int
    last: int
    posted: frozenset[int]
    seen: frozenset[int]


class Gateway(NamedTuple):
    status: str = UP
    nonce: int = 1
    rebuild: Rebuild | None = None


class Batch(NamedTuple):
    """What the worker has read, or has committed and not yet marked."""

    nonce: int
    last: int
    events: tuple[Event, ...]
    is_committed: bool = False


class World(NamedTuple):
    quota: int
    gateways: tuple[Gateway, ...]
    calls: tuple[Call, ...]
    memory: Memory
    rows: tuple[str | None, ...]  # the ledger, by call
    run: int = 1  # the server's own run id
    position: Position = NOWHERE  # the stored stream position
    worker: Batch | None = None
    unsynced_since: Memory | None = None  # what the disk has while fsync is stuck
    last_nonce: int = 1
    last_id: int = 0
    # Whether the stream is trimmed with the commit, the earliest and hardest moment, or at any moment after it.
    trims_at_once: bool = False

    @classmethod
    def of(cls, owners: tuple[int, ...], quota: int, *, trims_at_once: bool = False) -> "World":
        """One call for each item of `owners`, on the gateway it names."""
        gateways = tuple(Gateway() for _ in range(max(owners) + 1))
        memory = Memory(leases=frozenset(range(len(gateways))))
        calls = tuple(Call(owner) for owner in owners)
        return cls(quota, gateways, calls, memory, (None,) * len(owners), trims_at_once=trims_at_once)

    def owner(self, call: int) -> Gateway:
        return self.gateways[self.calls[call].gateway]

    def with_call(self, number: int, call: Call) -> "World":
        return self._replace(calls=(*self.calls[:number], call, *self.calls[number + 1 :]))

    def with_gateway(self, number: int, gateway: Gateway) -> "World":
        return self._replace(gateways=(*self.gateways[:number], gateway, *self.gateways[number + 1 :]))

    @property
    def is_open(self) -> bool:
        """Somebody has greeted this server since it started: every connection does so before anything else."""
        return self.memory.run == self.run
