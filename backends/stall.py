"""Whether an engine is stuck, though it says that it is well: calls run in it, and it takes no step.

The page is served by another thread or process than the one that computes, so that only the count of steps tells. Replicas
whose engine has no such count are found by their calls' patience alone.
"""

from dataclasses import dataclass

from backends.engines.report import Report

# Longer than a step can be: a whole long prompt at once on a slow machine. Shorter than a call's patience.
STUCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Pulse:
    """The count of steps, and since when it has been the same while calls ran, in seconds of any one clock."""

    steps: int | None = None
    since: float = 0.0


def after_look(pulse: Pulse, report: Report, now: float) -> Pulse:
    if report.steps is None or not report.running:
        return Pulse(report.steps, now)
    return pulse if report.steps == pulse.steps else Pulse(report.steps, now)


def is_stuck(pulse: Pulse, now: float, seconds: float = STUCK_SECONDS) -> bool:
    return pulse.steps is not None and now - pulse.since >= seconds
