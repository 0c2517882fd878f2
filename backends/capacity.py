"""How many calls each replica takes at present, from its own reports."""

import time
from collections.abc import Callable

from backends.engines.report import Report
from backends.fleet import Replica
from backends.saturation import Saturation, after_report


class Capacity:
    """Replicas that never reported take as many as their profile says."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, Saturation] = {}
        self._reported_at: dict[str, float] = {}
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
        if known.cap < replica.slots:
            self.tightened[replica.id] = known.cap
        else:
            self.tightened.pop(replica.id, None)

    def report_age(self, replica: Replica) -> float:
        """Seconds since the last report; infinite when there was none."""
        return self._now() - self._reported_at.get(replica.id, float("-inf"))

    def forget(self, replica_id: str) -> None:
        for known in (self._known, self._reported_at, self.tightened):
            known.pop(replica_id, None)
