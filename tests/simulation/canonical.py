"""Worlds that nothing can tell apart any more are one: numbers are closed up, facts that nobody will look at are dropped."""

from dataclasses import dataclass

from tests.simulation.mirror import is_mirrored, mirrored
from tests.simulation.world import DEAD, HELD, NEW, NOWHERE, Batch, Call, Event, Gateway, Memory, Position, World

GONE = Gateway(DEAD, -1)
ANOTHER = -1  # a nonce that is not, and will never be, the memory's own


def canonical(world: World) -> World:
    """The world that stands for all that are like it. Stream ids and nonces are only compared, so the n-th smallest is n."""
    world = _without_dead_facts(world)
    if is_mirrored(world):
        world = mirrored(world)
    ids, nonces = _numbers_of(world)
    if len(ids) == max(ids) + 1 and len(nonces) == max(nonces) + 2:
        return world._replace(last_nonce=max(nonces), last_id=max(ids))
    return _Renamed(_closed_up(ids), {**_closed_up(nonces - {ANOTHER}), ANOTHER: ANOTHER}).world(world)


def _closed_up(numbers: set[int]) -> dict[int, int]:
    return {old: new for new, old in enumerate(sorted(numbers))}


def _without_dead_facts(world: World) -> World:
    memory, saved, rows = world.memory, world.unsynced_since, world.rows
    calls = tuple([_call(call, row is not None) for call, row in zip(world.calls, rows, strict=True)])
    position = world.position
    if position[0] != memory.nonce and (saved is None or position[0] != saved.nonce):
        position = NOWHERE  # the stored nonce is nobody's: from the start
    return World(
        world.quota,
        tuple([_gateway(gateway, memory.nonce) for gateway in world.gateways]),
        calls,
        _memory(memory, calls, int(world.is_open)),
        rows,
        1,
        position,
        None if world.worker is None else _batch(world.worker, rows),
        # What the disk has will be read by a server with a run id of its own.
        None if saved is None else _memory(saved, calls, 0),
        trims_at_once=world.trims_at_once,
    )


def _call(call: Call, has_row: bool) -> Call:
    if not call.is_kept and (call.ending is not None or call.acked is not None):
        call = call._replace(ending=None, acked=None)
    return call._replace(was_admitted=False) if call.was_admitted and has_row else call


def _gateway(gateway: Gateway, nonce: int) -> Gateway:
    if gateway.status == DEAD:
        return GONE
    return gateway if gateway.nonce == nonce else Gateway(gateway.status, ANOTHER, gateway.rebuild)


def _memory(memory: Memory, calls: tuple[Call, ...], run: int) -> Memory:
    is_warm = run == 1 and memory.is_warm
    seen = memory.watermark[0]
    matters = seen == memory.nonce or any(call.acked is not None and call.acked[0] == seen for call in calls)
    tombs = memory.tombs
    if tombs:
        tombs = frozenset([n for n in tombs if calls[n].stage in (NEW, HELD) or calls[n].late_admit])
    return Memory(
        run,
        memory.nonce,
        run == 1 and memory.is_ready,
        memory.nonce if is_warm else 0,
        memory.used if is_warm else 0,
        memory.holds,
        tombs,
        memory.stream,
        memory.leases,
        memory.watermark if matters else NOWHERE,
    )


def _batch(batch: Batch, rows: tuple[str | None, ...]) -> Batch:
    first: dict[int, Event] = {}
    for event in batch.events:
        if rows[event.call] is None:
            first.setdefault(event.call, event._replace(id=0))
    return batch._replace(events=tuple(first.values()))


def _numbers_of(world: World) -> tuple[set[int], set[int]]:
    positions = [world.position, *(call.acked for call in world.calls if call.acked is not None)]
    nonces = {0, ANOTHER, *(gateway.nonce for gateway in world.gateways), *(call.late_admit for call in world.calls)}
    ids = {0}
    for memory in (world.memory, world.unsynced_since):
        if memory is not None:
            positions.append(memory.watermark)
            nonces |= {memory.nonce, memory.counted, *(nonce for _, nonce in memory.holds)}
            ids |= {event.id for event in memory.stream}
    rebuilds = [gateway.rebuild for gateway in world.gateways if gateway.rebuild is not None]
    positions += [(rebuild.nonce, rebuild.last) for rebuild in rebuilds]
    if world.worker is not None:
        positions.append((world.worker.nonce, world.worker.last))
    return ids | {number for _, number in positions}, nonces | {nonce for nonce, _ in positions}


@dataclass(frozen=True)
class _Renamed:
    ids: dict[int, int]
    nonces: dict[int, int]

    def world(self, world: World) -> World:
        return world._replace(
            gateways=tuple(self._gateway(gateway) for gateway in world.gateways),
            calls=tuple(self._call(call) for call in world.calls),
            memory=self._memory(world.memory),
            position=self._position(world.position),
            worker=self._batch(world.worker),
            unsynced_since=None if world.unsynced_since is None else self._memory(world.unsynced_since),
            last_nonce=len(self.nonces) - 2,
            last_id=len(self.ids) - 1,
        )

    def _position(self, position: Position) -> Position:
        return self.nonces[position[0]], self.ids[position[1]]

    def _gateway(self, gateway: Gateway) -> Gateway:
        rebuild = gateway.rebuild
        if rebuild is not None:
            nonce, last = self._position((rebuild.nonce, rebuild.last))
            rebuild = rebuild._replace(nonce=nonce, last=last)
        return gateway._replace(nonce=self.nonces[gateway.nonce], rebuild=rebuild)

    def _call(self, call: Call) -> Call:
        acked = None if call.acked is None else self._position(call.acked)
        return call._replace(acked=acked, late_admit=self.nonces[call.late_admit])

    def _memory(self, memory: Memory) -> Memory:
        return memory._replace(
            nonce=self.nonces[memory.nonce],
            counted=self.nonces[memory.counted],
            holds=tuple((call, self.nonces[nonce]) for call, nonce in memory.holds),
            stream=tuple(event._replace(id=self.ids[event.id]) for event in memory.stream),
            watermark=self._position(memory.watermark),
        )

    def _batch(self, batch: Batch | None) -> Batch | None:
        if batch is None:
            return None
        nonce, last = self._position((batch.nonce, batch.last))
        return batch._replace(nonce=nonce, last=last)
