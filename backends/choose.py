"""In which order the replicas of a pool are asked to take a call.

| first      | one on trial, so that its recovery is seen                                                        |
| then       | the one that knows most of the prompt, among those no fuller than the bound                        |
| else       | the prompt's home: where every gateway would take a prompt with this beginning, within a bound    |
| else       | the least full by its own size; equals go round                                                   |

A full one is listed too: the queue passes it over while another has a place, and gives its next free place to who waits for it.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from math import log
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
# Of one more than all 32-bit hashes there are.
LOG_ALL = log(2**32 + 1)


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


def _warm_first(ranked: list[tuple[float, int, Replica]], warmth: Warmth) -> bool:
    """Whether there is one. The bound is each replica's own affair: one that is too full keeps nobody from another warm one."""
    least, size = ranked[0][0], warmth.prompt.size
    parts = {}
    for share, _, replica in ranked:
        part = warmth.known.get(replica.id, 0) / size
        if part >= PART_MIN and share <= least + SLACK * part:
            parts[replica.id] = part
    if parts:
        ranked.sort(key=lambda each: parts.get(each[2].id, 0.0), reverse=True)
    return bool(parts)


def _home_first(ranked: list[tuple[float, int, Replica]], mark: int) -> None:
    """Rendezvous hashing, by size: when a replica comes or goes, only its own prompts move."""
    strongest, home = 0.0, 0
    for place, (_, _, replica) in enumerate(ranked):
        pull = replica.slots / (LOG_ALL - log(crc32(replica.id.encode(), mark) + 1))
        if pull > strongest:
            strongest, home = pull, place
    if home and ranked[home][0] <= ranked[0][0] + HOME_SLACK:
        ranked.insert(0, ranked.pop(home))
