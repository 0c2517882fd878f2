"""Every replica that this gateway knows of, in which state the fleet's record has it, and which may be given new calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from backends.dedicated import pool_name
from backends.fleet import Fleet, Replica
from backends.states import OPEN, State


@dataclass(frozen=True, slots=True)
class Record:
    """What the fleet's record has of a replica. `version` counts its changes."""

    state: State
    version: int


class Roster:
    """The fleet file's replicas, those that were added at run time, and those that were found behind names.

    `on_new` is told of each that was not there at the start, before a call can reach it.
    """

    def __init__(self, fleet: Fleet, on_new: Callable[[str], None] = lambda _: None) -> None:
        self.fleet = fleet
        self._on_new = on_new
        self._parts: dict[str, tuple[Replica, ...]] = {"file": fleet.replicas}
        self._records: Mapping[str, Record] = {}
        self._by_id: dict[str, Replica] = {}
        self._open: dict[str, list[Replica]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._put_together()

    def listen(self, listener: Callable[[], None]) -> None:
        """`listener` is called whenever replicas have come or gone."""
        self._listeners.append(listener)

    @property
    def replicas(self) -> Sequence[Replica]:
        """All but those that are gone."""
        return tuple(self._by_id.values())

    def replica(self, replica_id: str) -> Replica | None:
        return self._by_id.get(replica_id)

    def origin(self, replica_id: str) -> str:
        """`file`, `added`, or `found` behind a name."""
        part = next(part for part, found in self._parts.items() if any(one.id == replica_id for one in found))
        return part.partition(" ")[0]

    def open(self, pool: str) -> Sequence[Replica]:
        """Those of a pool that may be given new calls. The same list for ever: calls that wait see in it who comes and goes."""
        return self._open.setdefault(pool, [])

    def state(self, replica_id: str) -> State:
        record = self._records.get(replica_id)
        return State.STARTING if record is None else record.state

    def version(self, replica_id: str) -> int:
        """How far this gateway follows the record; 0: not heard of."""
        record = self._records.get(replica_id)
        return 0 if record is None else record.version

    def follow(self, records: Mapping[str, Record], added: Iterable[Replica]) -> None:
        """What the fleet's record has now."""
        self._records = records
        self._parts["added"] = tuple(added)
        self._put_together()

    def found(self, group: str, replicas: Iterable[Replica]) -> None:
        """What a name stands for now."""
        self._parts[f"found {group}"] = tuple(replicas)
        self._put_together()

    def _put_together(self) -> None:
        """The first of two with one name stands: the file's goes before what was added."""
        before, self._by_id = self._by_id, {}
        for part in self._parts.values():
            for replica in part:
                if self.state(replica.id) is not State.GONE:
                    self._by_id.setdefault(replica.id, replica)
        if before and (new := self._by_id.keys() - before.keys()):
            for replica_id in new:
                self._on_new(replica_id)
        able: dict[str, list[Replica]] = {pool: [] for pool in self._open}
        for replica in self._by_id.values():
            if self.state(replica.id) in OPEN:
                able.setdefault(pool_of(replica), []).append(replica)
        for pool, replicas in able.items():
            self._open.setdefault(pool, [])[:] = replicas
        if before != self._by_id:
            for listener in self._listeners:
                listener()


def pool_of(replica: Replica) -> str:
    """As the queue names it."""
    return pool_name(replica.model, replica.dedicated_to) if replica.dedicated_to else replica.model
