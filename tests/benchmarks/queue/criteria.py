"""What the queue must show on a real engine, held against the figures of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.benchmarks.queue.figures import Figures
from tests.benchmarks.queue.trace import SHARES

NEAR = 1.10
TOKENS_KEPT = 0.97
PREMIUM_MEDIAN_SECONDS, PREMIUM_P95_SECONDS = 0.2, 0.8


@dataclass(frozen=True, slots=True)
class Criterion:
    """`seen` None: nothing came that could be held against `bound`."""

    what: str
    seen: float | None
    bound: float
    is_met: bool

    def line(self) -> str:
        seen = "nothing" if self.seen is None else f"{self.seen:g}"
        return f"{'pass' if self.is_met else 'MISS'}  {self.what}: {seen} ({self.bound:g})"


def judged(found: Mapping[str, Figures]) -> list[Criterion]:
    """`found` by the variants' names."""
    return [*_nobody_turned_away(found), *_as_the_engine(found), *_with_a_reserve(found)]


def _nobody_turned_away(found: Mapping[str, Figures]) -> Iterator[Criterion]:
    """Without it the others say nothing: who is turned away waits for nothing and takes nobody's slot."""
    for reserved in (0, 1, 2):
        classes = found[f"ours-{reserved}"].classes.values()
        away = sum(one.refused + one.failed for one in classes)
        yield Criterion(f"{reserved} reserved: calls refused or failed", away, 0, away == 0)


def _as_the_engine(found: Mapping[str, Figures]) -> Iterator[Criterion]:
    ours, engine = found["ours-0"], found["engine-priority"]
    for name in SHARES:
        mine, its = ours.classes[name], engine.classes[name]
        for which, seen, bound in (("median", mine.ttft_median, its.ttft_median), ("p95", mine.ttft_p95, its.ttft_p95)):
            what = f"0 reserved: {name} {which} seconds, at most a tenth over the engine's own"
            yield _at_most(what, seen, (bound or 0.0) * NEAR)
    for name, whose in (("gateway-fifo", "FIFO through the gateway"), ("engine-fifo", "the engine's FIFO, alone on these cores")):
        bound, seen = round(found[name].useful_per_second * TOKENS_KEPT, 1), ours.useful_per_second
        yield Criterion(f"0 reserved: useful tokens/s, at least 97% of {whose}", seen, bound, seen >= bound)


def _with_a_reserve(found: Mapping[str, Figures]) -> Iterator[Criterion]:
    for reserved in (1, 2):
        premium = found[f"ours-{reserved}"].classes["premium"]
        yield _at_most(f"{reserved} reserved: Premium median seconds, at most", premium.ttft_median, PREMIUM_MEDIAN_SECONDS)
        yield _at_most(f"{reserved} reserved: Premium p95 seconds, at most", premium.ttft_p95, PREMIUM_P95_SECONDS)


def _at_most(what: str, seen: float | None, bound: float) -> Criterion:
    return Criterion(what, seen, round(bound, 3), seen is not None and seen <= round(bound, 3))
