"""How many calls a replica is given at once: its profile's slots, or fewer while the engine says that it has too much.

| the engine says                                         | the cap                                               |
| ------------------------------------------------------- | ----------------------------------------------------- |
| more wait than its line, in two reports in a row        | a fifth less, but not below what it runs and its line |
| it took memory away from running requests               | a fifth less                                          |
| its KV cache is nearly full                             | a fifth less                                          |
| the KV cache is well filled, or more wait for once      | stays                                                 |
| none of these                                           | a sixteenth of the slots more, up to the slots        |
| nothing (no page, too late, without a gauge for it)     | stays                                                 |

Down by a factor, up by steps: several gateways that see one engine find the same cap without a word between them. One report
of waiting requests is no sign: every prompt waits for the engine's next step. Its line is what the operator lets it keep waiting.
"""

from dataclasses import dataclass

from backends.engines.report import Report

# The longest that a report may have been on its way: what is older says nothing of now.
STALE_SECONDS = 5.0
KEPT_OF_FIVE = 4
STEPS_TO_RECOVER = 16
# vLLM preempts when the last block is taken; each running request may need its next one in any step.
KV_FULL = 0.95
# llm-d takes an engine for saturated from here on; we stop adding.
KV_FILLED = 0.80


@dataclass(frozen=True, slots=True)
class Saturation:
    """What is remembered of a replica between two reports."""

    cap: int
    had_waiting: bool = False
    preemptions: int | None = None


def after_report(now: Saturation, slots: int, report: Report, age_seconds: float = 0.0, *, line: int = 0) -> Saturation:
    """Never over `slots`, never under 1. A stale report changes nothing."""
    if age_seconds > STALE_SECONDS or report == Report():
        return now
    waits, kv_use = (report.waiting or 0) > line, report.kv_use or 0.0
    took_away = now.preemptions is not None and (report.preemptions or 0) > now.preemptions
    if took_away or kv_use >= KV_FULL:
        cap = now.cap * KEPT_OF_FIVE // 5
    elif waits and now.had_waiting:
        cap = min(now.cap, max(now.cap * KEPT_OF_FIVE // 5, (report.running or 0) + line))
    elif waits or kv_use >= KV_FILLED:
        cap = now.cap
    else:
        cap = now.cap + max(1, slots // STEPS_TO_RECOVER)
    return Saturation(max(1, min(slots, cap)), waits, report.preemptions)
