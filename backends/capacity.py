"""How many calls each replica takes at present, from its own reports."""

import time
from collections.abc import Callable

from backends.engines.report import Report
from backends.fleet import Replica
from backends.saturation import Saturation, after_report

# Who comes back is given this part of its slots, and twice as many with each probe that finds it well: its caches are empty, and
# all that waited would come at once.
FIRST_PART = 8


class Capacity:
    """Replicas that never reported take as many as their profile says; those that came back, fewer at first."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, Saturation] = {}
        self._reported_at: dict[str, float] = {}
        self._ramps: dict[str, int] = {}
        # Only those that take fewer than their slots: calls pay for a look-up, not for a healthy fleet.
        self.tightened: dict[str, int] = {}

    def cap(self, replica: Replica) -> int:
        return self.tightened.get(replica.id, replica.slots)

    def reported(self, replica: Replica, report: Report, age_seconds: float) -> None:
        before = self._known.get(replica.id) or Saturation(replica.slots)
        known = after_report(before, replica.slots, report, age_seconds, line=replica.line)
        if known is before:
            return
        self._known[replica.id], self._reported_at[replica.id] = known, self._now()
        self._tighten(replica)

    def came_back(self, replica: Replica) -> None:
        """It is slow to start."""
        self._ramps[replica.id] = max(1, replica.slots // FIRST_PART)
        self._tighten(replica)

    def is_well(self, replica: Replica) -> None:
        """Another probe has found it so."""
        ramp = self._ramps.get(replica.id)
        if ramp is None:
            return
        if ramp * 2 < replica.slots:
            self._ramps[replica.id] = ramp * 2
        else:
            del self._ramps[replica.id]
        self._tighten(replica)

    def _tighten(self, replica: Replica) -> None:
        known = self._known.get(replica.id)
        cap = min(replica.slots if known is None else known.cap, self._ramps.get(replica.id, replica.slots))
        if cap < replica.slots:
            self.tightened[replica.id] = cap
        else:
            self.tightened.pop(replica.id, None)

    def report_age(self, replica: Replica) -> float:
        """Seconds since the last report; infinite when there was none."""
        return self._now() - self._reported_at.get(replica.id, float("-inf"))

    def forget(self, replica_id: str) -> None:
        for known in (self._known, self._reported_at, self._ramps, self.tightened):
            known.pop(replica_id, None)
