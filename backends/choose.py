"""In which order the replicas of a pool are asked to take a call."""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from backends.fleet import Replica

NONE_TIGHTENED: Mapping[str, int] = MappingProxyType({})


class Standing(Enum):
    """What is known of a replica: fit, to be tried by one call, or left alone."""

    READY = "ready"
    TRIAL = "trial"
    BROKEN = "broken"


def preference(
    replicas: Sequence[Replica],
    in_flight: Mapping[str, int],
    standings: Mapping[str, Standing],
    turn: int = 0,
    tightened: Mapping[str, int] = NONE_TIGHTENED,
) -> tuple[Replica, ...]:
    """One on trial first, so that its recovery is seen; then by the share of slots in use; ties go round with `turn`.

    `tightened` are those that take fewer calls than their slots at present. Broken ones are left out: nothing is returned when
    no replica of the pool can take a call.
    """
    count = len(replicas)

    def order(numbered: tuple[int, Replica]) -> tuple[bool, float, int]:
        index, replica = numbered
        is_sound = standings.get(replica.id, Standing.READY) is Standing.READY
        return is_sound, in_flight.get(replica.id, 0) / tightened.get(replica.id, replica.slots), (index - turn) % count

    fit = [pair for pair in enumerate(replicas) if standings.get(pair[1].id) is not Standing.BROKEN]
    fit.sort(key=order)
    return tuple(replica for _, replica in fit)
