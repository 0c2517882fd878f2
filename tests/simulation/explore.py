"""Every interleaving, with up to so many faults at any moment; a world is put down to the fewest faults that lead to it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.canonical import canonical
from tests.simulation.faults import ALL, faults
from tests.simulation.judge import deviations
from tests.simulation.steps import steps
from tests.simulation.world import World

FaultSet = tuple[str, ...]
Where = tuple[int, FaultSet]


@dataclass
class Explored:
    """`causes`: for each deviation the smallest sets of faults that lead to it."""

    worlds: int = 0
    at_rest: int = 0
    causes: dict[str, set[FaultSet]] = field(default_factory=lambda: defaultdict(set))
    examples: dict[tuple[str, FaultSet], Where] = field(default_factory=dict)
    reached: dict[int, list[FaultSet]] = field(default_factory=dict)
    parents: dict[Where, tuple[str, Where]] = field(default_factory=dict)

    def story(self, name: str, cause: FaultSet) -> list[str]:
        """The steps of one way there."""
        where, told = self.examples[name, cause], []
        while where in self.parents:
            label, where = self.parents[where]
            told.append(label)
        return told[::-1]

    def is_new(self, world: int, cause: FaultSet) -> bool:
        known = self.reached.setdefault(world, [])
        if any(is_part(other, cause) for other in known):
            return False
        known.append(cause)
        self.worlds += 1
        return True

    def note(self, name: str, where: Where) -> None:
        cause = where[1]
        if not any(is_part(other, cause) for other in self.causes[name]):
            self.causes[name].add(cause)
            self.examples[name, cause] = where


def is_part(part: FaultSet, whole: FaultSet) -> bool:
    return all(whole.count(fault) >= part.count(fault) for fault in part)


def explore(start: World, faults_max: int, allowed: Collection[str] = ALL) -> Explored:
    """Everything without a fault first, then with one, then with two: so that each deviation is put down to the fewest."""
    explored = Explored()
    layer: list[tuple[World, FaultSet]] = [(canonical(start), ())]
    explored.is_new(hash(layer[0][0]), ())
    for budget in range(faults_max, -1, -1):
        following: list[tuple[World, FaultSet]] = []
        reached = list(_closure(layer, explored))
        if budget:
            for world, cause in reached:
                wrong = ((name, after, tuple(sorted((*cause, name)))) for name, after in faults(world) if name in allowed)
                following += _enter(world, cause, wrong, explored)
        layer = following
    return explored


def _closure(layer: list[tuple[World, FaultSet]], explored: Explored) -> Iterator[tuple[World, FaultSet]]:
    frontier = layer
    while frontier:
        following: list[tuple[World, FaultSet]] = []
        for world, cause in frontier:
            yield world, cause
            fresh = [(label, after, cause) for label, after in steps(world)]
            if not fresh:
                explored.at_rest += 1
                for name in deviations(world):
                    explored.note(name, (hash(world), cause))
            following += _enter(world, cause, fresh, explored)
        frontier = following


def _enter(
    world: World, cause: FaultSet, found: Iterable[tuple[str, World, FaultSet]], explored: Explored
) -> Iterator[tuple[World, FaultSet]]:
    origin = (hash(world), cause)
    for label, after, after_cause in found:
        known = canonical(after)
        if explored.is_new(hash(known), after_cause):
            explored.parents[hash(known), after_cause] = (label, origin)
            yield known, after_cause
