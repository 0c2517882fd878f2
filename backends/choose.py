"""In which order the replicas of a pool are asked to take a call.

| first      | one on trial, so that its recovery is seen                                                        |
| then       | the one that knows most of the prompt, among those no fuller than the bound                        |
| else       | the prompt's home: where every gateway would take a prompt with this beginning, within a bound    |
| else       | the least full by its own size; equals go round                                                   |

A full one is listed too: the queue passes it over while another has a place, and gives its next free place to who waits for it.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple
from zlib import crc32

from backends.fleet import Replica
from backends.prefix import NO_PROMPT, Prompt

NONE_TIGHTENED: Mapping[str, int] = MappingProxyType({})
# How much fuller than the least full one, as a share of its places, a replica may be and still be taken for what it knows: so
# much if it knows all of the prompt, and less by the part that it doesn't. Simulated (docs/routing.md): from 0.5 up hits hardly
# grow, and beyond 1 the load spreads worse.
SLACK = 0.8
# The same for the home of a prompt that nobody knows. Two gateways, which don't know each other's calls, meet there.
HOME_SLACK = 0.1
# Less of a prompt than this isn't worth being warm for.
PART_MIN = 0.05
# So many 32-bit hashes there are.
HASHES = 2**32


class Standing(Enum):
    """What is known of a replica: fit, to be tried by one call, or left alone."""

    READY = "ready"
    TRIAL = "trial"
    BROKEN = "broken"


class Warmth(NamedTuple):
    """A call's prompt, and how many bytes of it each replica has in its cache; those that have none are left out."""

    prompt: Prompt = NO_PROMPT
    known: Mapping[str, int] = MappingProxyType({})


COLD = Warmth()
_Ranked = tuple[float, int, Replica]
"""Its load with this call, its turn among equals."""


def preference(
    replicas: Sequence[Replica],
    in_flight: Mapping[str, int],
    standings: Mapping[str, Standing],
    turn: int = 0,
    tightened: Mapping[str, int] = NONE_TIGHTENED,
    *,
    warmth: Warmth = COLD,
) -> tuple[Replica, ...]:
    """`tightened` are those that take fewer calls than their slots at present. Broken ones are left out: nothing is returned when
    no replica of the pool can take a call.
    """
    fit = [one for one in replicas if standings.get(one.id) is not Standing.BROKEN] if standings else replicas
    count = len(fit)
    # Places differ, so replicas themselves are never compared.
    ranked = sorted(
        [
            ((in_flight.get(one.id, 0) + 1) / tightened.get(one.id, one.slots), (index - turn) % count, one)
            for index, one in enumerate(fit)
        ]
    )
    if count > 1 and warmth.prompt.mark and not (warmth.known and _warm_first(ranked, warmth)):
        _home_first(ranked, warmth.prompt.mark)
    order = [each[2] for each in ranked]
    if standings:
        order.sort(key=lambda one: standings.get(one.id, Standing.READY) is Standing.READY)
    return tuple(order)


def _warm_first(ranked: list[_Ranked], warmth: Warmth) -> bool:
    """Whether there is one. The bound is each replica's own affair: one that is too full keeps nobody from another warm one."""
    least, size, warm = ranked[0][0], warmth.prompt.size, list[tuple[int, int]]()
    for place, (share, _, replica) in enumerate(ranked):
        known = warmth.known.get(replica.id)
        if known is not None and known >= PART_MIN * size and share <= least + SLACK * known / size:
            warm.append((-known, place))
    if not warm:
        return False
    places = [place for _, place in sorted(warm)]
    ranked[:] = [ranked[place] for place in places] + [each for place, each in enumerate(ranked) if place not in places]
    return True


def _home_first(ranked: list[_Ranked], mark: int) -> None:
    """Rendezvous hashing, about by size: when a replica comes or goes, only its own prompts move."""
    nearest, home = float(HASHES) + 1, 0
    for place, (_, _, replica) in enumerate(ranked):
        distance = (HASHES - crc32(replica.id.encode(), mark)) / replica.slots
        if distance < nearest:
            nearest, home = distance, place
    if home and ranked[home][0] <= ranked[0][0] + HOME_SLACK:
        ranked.insert(0, ranked.pop(home))
