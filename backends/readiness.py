"""What this gateway knows of each replica, from its calls and from its probes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from backends.breaker import Breaker, State, after_accusation, after_fault, after_success, after_try_began, is_fault, may_try
from backends.choose import COLD, NONE_TIGHTENED, Standing, Warmth, preference
from backends.fleet import Replica

# One missed probe may be a long tick of a busy engine.
MISSED_PROBES_TO_FALL = 2
# And then one more, before what was sent there is begun anew elsewhere: of that the fleet has twice the work.
MISSED_PROBES_TO_GIVE_UP = 3
# One call asks for its order more than once (before it queues, while it waits): its try stays its own for as long.
TRY_SECONDS = 0.05


class Readiness:
    """Replicas not heard of yet count as ready: a call to one that is not costs a refused connection."""

    def __init__(self, now: Callable[[], float] = time.monotonic, fell: Callable[[str], None] | None = None) -> None:
        """`fell` is told of each that is down or gone: what its process knew is lost."""
        self._now, self._fell = now, fell or (lambda _: None)
        # Only those of which there is anything to say: calls pay for a look-up, not for a healthy fleet.
        self._known: dict[str, _Known] = {}
        self._well: set[str] = set()
        self._turn = 0

    def prefer(
        self,
        pool: Sequence[Replica],
        in_flight: Mapping[str, int],
        tightened: Mapping[str, int] = NONE_TIGHTENED,
        warmth: Warmth = COLD,
    ) -> tuple[Replica, ...]:
        """Whom to ask for a slot, in order. When the first one is on trial, this call is its try."""
        if len(pool) == 1 and not self._known:
            return tuple(pool)
        self._turn += 1
        standings = {replica.id: self.standing(replica.id) for replica in pool} if self._known else {}
        order = preference(pool, in_flight, standings, self._turn, tightened, warmth=warmth)
        if order and self.standing(order[0].id) is Standing.TRIAL:
            known, now = self._of(order[0].id), self._now()
            if may_try(known.breaker, now):
                known.breaker = after_try_began(known.breaker, now)
            # Others on trial wait for their turn: one call risks one replica.
            return tuple(replica for replica in order if replica is order[0] or self.standing(replica.id) is Standing.READY)
        return order

    def standing(self, replica_id: str) -> Standing:
        known = self._known.get(replica_id)
        if known is None:
            return Standing.READY
        if not known.is_up or known.is_stuck:
            return Standing.BROKEN
        if known.breaker.state is State.CLOSED:
            return Standing.READY
        now = self._now()
        is_begun = known.breaker.state is State.HALF_OPEN and now - known.breaker.since < TRY_SECONDS
        return Standing.TRIAL if is_begun or may_try(known.breaker, now) else Standing.BROKEN

    def called(self, replica_id: str, outcome: BaseException | int) -> None:
        """How a call ended: a status of the engine's, or what was raised, if no request can be the cause of it. An abort or a
        cancellation tells nothing."""
        if is_fault(outcome):
            known = self._of(replica_id)
            known.breaker = after_fault(known.breaker, self._now())
        elif isinstance(outcome, int) and replica_id in self._known:
            known = self._of(replica_id)
            known.breaker = after_success(known.breaker)
            self._forget_if_well(replica_id)

    def accused(self, replica_id: str, account: str) -> None:
        """A call of this account failed there; whether it would have elsewhere, nobody knows."""
        known = self._of(replica_id)
        known.breaker = after_accusation(known.breaker, self._now(), account)

    def probed(self, replica_id: str, is_healthy: bool, *, is_certain: bool = False) -> None:
        """`is_certain`: it refused the connection, which needs no second look."""
        known = self._of(replica_id)
        if is_healthy:
            if not known.is_up:
                known.breaker = Breaker()  # it is another process now
            known.missed, known.is_up = 0, True
            self._well.add(replica_id)
            self._forget_if_well(replica_id)
        else:
            known.missed += 1
            known.is_up = known.is_up and not (is_certain or known.missed >= MISSED_PROBES_TO_FALL)
            if not known.is_up:
                self._well.discard(replica_id)
                self._fell(replica_id)

    def unseen(self, replica_id: str) -> None:
        """It came at run time, or was broken before this gateway began: no calls until a probe has found it well."""
        if replica_id not in self._well:
            self._of(replica_id).is_up = False

    def is_well(self, replica_id: str) -> bool:
        """A probe has found it well, and neither probes nor calls have found otherwise since."""
        known = self._known.get(replica_id)
        return replica_id in self._well and (known is None or (known.breaker.state is State.CLOSED and not known.is_stuck))

    def stuck(self, replica_id: str, is_stuck: bool) -> None:
        """It answers, and computes nothing (backends/stall.py)."""
        if is_stuck or replica_id in self._known:
            self._of(replica_id).is_stuck = is_stuck
            self._forget_if_well(replica_id)

    def is_given_up(self, replica_id: str) -> bool:
        """Calls that wait for its answers may go elsewhere: it is stuck, or has missed too many probes to be back in a moment."""
        known = self._known.get(replica_id)
        return known is not None and (known.is_stuck or known.missed >= MISSED_PROBES_TO_GIVE_UP)

    def forget(self, replica_id: str) -> None:
        self._known.pop(replica_id, None)
        self._well.discard(replica_id)
        self._fell(replica_id)

    def _of(self, replica_id: str) -> "_Known":
        return self._known.setdefault(replica_id, _Known())

    def _forget_if_well(self, replica_id: str) -> None:
        if self._known[replica_id] == _Known():
            del self._known[replica_id]


@dataclass(slots=True)
class _Known:
    breaker: Breaker = field(default_factory=Breaker)
    is_up: bool = True
    missed: int = 0
    is_stuck: bool = False
