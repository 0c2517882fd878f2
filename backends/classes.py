"""The classes of the line, which plan stands in which, and what each is given of a pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

# By rank: what stands first is served first.
CLASSES = ("enterprise", "premium", "pro", "free", "batch")


@dataclass(frozen=True, slots=True)
class ClassRules:
    """What one class may do in each pool.

    `floor_percent`: of the grants, while it has waiters and runs less than that share. `reserved`: slots that no lower class
    takes. `share_percent`: the most that it and those below run together while a class above waits. `depth`, `wait_seconds`: how
    many may wait, and how long.
    """

    floor_percent: int = 0
    reserved: int = 0
    share_percent: int = 100
    depth: int = 256
    wait_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.floor_percent <= 50 or not 1 <= self.share_percent <= 100 or self.reserved < 0 or self.depth < 0:
            raise ValueError(f"{self} can't be kept")


# Reserves cost throughput, so an operator asks for them. Floors add up to less than half: the order is still the plans'.
DEFAULTS: Mapping[str, ClassRules] = MappingProxyType(
    {
        "enterprise": ClassRules(),
        "premium": ClassRules(floor_percent=10),
        "pro": ClassRules(floor_percent=10),
        "free": ClassRules(floor_percent=5, share_percent=15),
        "batch": ClassRules(floor_percent=1, share_percent=15),
    }
)


class Classes:
    """The rules of all five; never changed, replaced as a whole."""

    def __init__(self, rules: Mapping[str, ClassRules]) -> None:
        self._rules = dict(rules)
        ordered = [self._rules[name] for name in CLASSES]
        # What the scripts take, and how many slots the classes above keep from each.
        self.packed = " ".join(f"{one.floor_percent} {one.reserved} {one.share_percent}" for one in ordered)
        self._kept = {name: sum(one.reserved for one in ordered[:rank]) for rank, name in enumerate(CLASSES)}

    @classmethod
    def of(cls, changes: Mapping[str, ClassRules]) -> Self:
        """The defaults with some classes changed. Raises ValueError for a name that is none."""
        if strange := changes.keys() - set(CLASSES):
            raise ValueError(f"{', '.join(sorted(strange))}: no class of {', '.join(CLASSES)}")
        return cls({**DEFAULTS, **changes})

    def rules(self, name: str) -> ClassRules:
        return self._rules[name]

    def rank(self, name: str) -> int:
        return CLASSES.index(name)

    def kept_from(self, name: str) -> int:
        """Slots that the classes above keep from this one."""
        return self._kept[name]


DEFAULT_CLASSES = Classes(DEFAULTS)
