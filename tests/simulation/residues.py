"""What the protocol leaves over: which faults lead to which exception, and where that is written down."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.explore import Explored, FaultSet
from tests.simulation.faults import FLUSHED, KILLED, ROLLED_BACK, WENT_AWAY
from tests.simulation.judge import (
    COUNTER_WRONG,
    EXPIRED_ANSWER,
    LATE_ANSWER,
    OVER_BILLED,
    ROW_LOST,
    STRAY_EXPIRY,
)


@dataclass(frozen=True)
class Residue:
    """`written` is the line of docs/decisions/0001 that tells of it."""

    name: str
    causes: frozenset[FaultSet]
    written: str


BOTH_FORGET = frozenset({(FLUSHED, KILLED), (ROLLED_BACK, KILLED)})
BACK_LATE = frozenset({(FLUSHED, WENT_AWAY), (ROLLED_BACK, WENT_AWAY)})
KNOWN = (
    Residue(EXPIRED_ANSWER, frozenset({(KILLED,)}), "last byte left in the instant of a kill"),
    Residue(LATE_ANSWER, frozenset({(WENT_AWAY,)}), "A frozen gateway that settles after it was swept"),
    Residue(STRAY_EXPIRY, frozenset({(WENT_AWAY,)}), "A frozen gateway that settles after it was swept"),
    Residue(ROW_LOST, BOTH_FORGET, "Losing a gateway and Valkey's memory in the same second loses"),
    Residue(OVER_BILLED, BOTH_FORGET, "what the worker had read and not yet committed"),
    Residue(COUNTER_WRONG, BOTH_FORGET, "what the worker had read and not yet committed"),
    Residue(OVER_BILLED, BACK_LATE, "re-asserts late"),
    Residue(COUNTER_WRONG, BACK_LATE, "re-asserts late"),
)


def unexpected(explored: Explored, faults_max: int) -> Iterator[tuple[str, FaultSet]]:
    """What was found and is not known, and what is known (of so many faults) and was not found."""
    known = {(residue.name, tuple(sorted(cause))) for residue in KNOWN for cause in residue.causes if len(cause) <= faults_max}
    found = {(name, cause) for name, causes in explored.causes.items() for cause in causes}
    yield from sorted(known ^ found)
