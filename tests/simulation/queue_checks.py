"""What must hold after every step of the simulated pool, and at its end."""

from collections import Counter

from backends.classes import CLASSES
from tests.backends.queue.model import PoolModel
from tests.backends.queue.order import DEEP, RANKS, SCAN, Place, kept_from, replica_for
from tests.simulation.queue_world import LEASE_MS, POLL_MS, State, World

# After the pool's memory was lost, a waiter is back in the line with its next question.
BACK_IN_LINE_MS = 2 * POLL_MS


class Checks:
    """Called with the world after each step. Raises AssertionError with what was broken."""

    def __init__(self) -> None:
        self.passed: Counter[int] = Counter()  # grants to others while a class waited below its floor
        self.earned: Counter[int] = Counter()  # what a class may overtake with: its floor's percent of each grant to others

    def __call__(self, world: World) -> None:
        if world.excused:
            world.disturbed_at = world.time
        granted = [world.rank_of(request) for request in world.granted]
        self._caps(world)
        self._waiters(world)
        self._nothing_is_idle(world)
        self._ranks(world, granted)
        self._floors(world, granted)

    def _caps(self, world: World) -> None:
        """In use at most what there is; but for calls that the pool was made to forget, while they last."""
        is_calm = not world.excused and world.time - world.disturbed_at > LEASE_MS
        running = Counter(call.replica for gateway in world.gateways for call in gateway.running.values())
        for name, cap in world.setting.caps.items():
            assert running[name] <= cap or not is_calm, f"{running[name]} of {cap} run on {name}"

    def _waiters(self, world: World) -> None:
        """Nobody is lost, nobody waits past its limit."""
        model, is_calm = world.model, world.time - world.disturbed_at > BACK_IN_LINE_MS
        for gateway in world.gateways:
            for call in gateway.waiting.values():
                waited = call.waited + world.time - call.waits_since
                assert waited <= world.setting.wait_ms, f"{call.request} waits {waited} ms"
                is_known = call.request in model.line or call.request in model.slots or call.is_unsure
                assert is_known or not is_calm or call.waits_since == world.time, f"{call.request} is lost"

    def _nothing_is_idle(self, world: World) -> None:
        """No slot is free that a waiter could have, by the caps that waiters have named lately. (Looking past many waiters of a
        dead gateway may take more than one step.)"""
        model = world.model
        if world.time - world.killed_at < 2 * LEASE_MS:
            return
        room, slots = model._room()
        if not model.is_served or not any(room.values()):
            return
        for request in _in_sight(model):
            place = model.line[request]
            is_free_to_go = model.alive(place.gateway) and not _is_capped(world, place, slots)
            could = is_free_to_go and replica_for(place, room, kept_from(world.setting.classes, place.rank, slots))
            assert not could, f"{request} waits, and {could} is free"

    def _ranks(self, world: World, granted: list[int]) -> None:
        """A class overtakes one above it by its floor alone: with a hundredth part of each turn of others for each percent."""
        if not granted:
            return
        rules = world.setting.classes.rules
        line = [world.model.line[request] for request in _in_sight(world.model)]
        for (request, replica), rank in zip(world.granted.items(), granted, strict=True):
            overtaken = [p for p in line if p.rank < rank and replica in p.replicas and world.model.alive(p.gateway)]
            if overtaken:
                self.earned[rank] -= 100
                assert self.earned[rank] >= -100, f"{request} overtook {CLASSES[overtaken[0].rank]}"
            for other in RANKS:
                self.earned[other] += rules(CLASSES[other]).floor_percent if other != rank else 0
        for rank in RANKS:
            self.earned[rank] = min(100, self.earned[rank])

    def _floors(self, world: World, granted: list[int]) -> None:
        """A class that waits all the time while it runs less than its floor has its turn before too many others had theirs."""
        model, slots = world.model, sum(world.setting.caps.values())
        waiting = {place.rank for place in model.line.values()}
        running = Counter(held.rank for held in model.slots.values())
        for rank in RANKS:
            floor = world.setting.classes.rules(CLASSES[rank]).floor_percent
            is_short = floor > 0 and rank in waiting and running[rank] * 100 < floor * slots and not world.broken
            self.passed[rank] = self.passed[rank] + len(granted) if is_short and rank not in granted else 0
            assert self.passed[rank] * floor <= 100 + 6 * floor, f"{CLASSES[rank]} starves"


def _in_sight(model: PoolModel) -> list[str]:
    """Who is surely looked at when a slot is free: of each class the first, of each account the first. (The grants of one step
    move the line on by a few, so half of what is looked at.)"""
    seen, of_class, of_flow = list[str](), Counter[int](), Counter[tuple[int, str]]()
    turn = {flow: place for place, flow in enumerate(sorted(model.scores, key=lambda flow: model.scores[flow]))}
    order = sorted(model.in_order(), key=lambda request: (not model.line[request].at_head, turn.get(model.line[request].flow, 0)))
    for request in order:
        place = model.line[request]
        of_class[place.rank] += 1
        of_flow[place.flow] += 1
        if of_class[place.rank] <= SCAN // 2 and of_flow[place.flow] <= DEEP // 2:
            seen.append(request)
    return seen


def _is_capped(world: World, place: Place, slots: int) -> bool:
    """Its class and those below run their share already, and somebody above waits; or so it is for a class above it."""
    model = world.model
    for rank in range(place.rank + 1):
        share = world.setting.classes.rules(CLASSES[rank]).share_percent
        above = any(other.rank < rank for other in model.line.values())
        runs = sum(held.rank >= rank for held in model.slots.values())
        if share < 100 and above and runs >= max(1, share * slots // 100):
            return True
    return False


def at_the_end(world: World) -> None:
    """Nothing is left of anybody."""
    assert not any(call.state in (State.WAITS, State.RUNS) for call in world.calls)
    assert not world.model.slots, world.model.slots
    assert not world.model.line, world.model.line
