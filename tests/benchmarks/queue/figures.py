"""From what was answered to figures: by class who was served and when its first token came, and what was useful of it all."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.queue.call import Answer
from tests.benchmarks.queue.play import Played
from tests.benchmarks.queue.trace import SHARES


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Seconds to first token are of those that had one; `in_target_percent` is of all that arrived."""

    arrived: int
    served: int
    refused: int
    cut: int
    failed: int
    ttft_median: float | None
    ttft_p95: float | None
    in_target_percent: float


@dataclass(frozen=True, slots=True)
class Figures:
    """`useful_per_second` are tokens of whole answers over all of `seconds`, to the last answer or the cut.

    Of the engine: the calls that it ran and kept waiting, while calls arrived; of the gateway, the calls that it gave the engine.
    `reasons`: why calls were not served.
    """

    classes: Mapping[str, ClassFigures]
    seconds: float
    useful_tokens: int
    useful_per_second: float
    late_ms_p95: float
    running_mean: float | None
    waiting_mean: float | None
    cap_lowest: int | None
    cap_mean: float | None
    cpu_seconds: Mapping[str, float]
    reasons: Mapping[str, int]


def figures(times: Sequence[Played], targets_ms: Mapping[str, int]) -> Figures:
    """Of all the times that it was played, as if they were one."""
    answers = [answer for played in times for answer in played.answers]
    samples = [sample for played in times for sample in played.samples]
    seconds = sum(played.seconds for played in times)
    useful = sum(answer.tokens for answer in answers if answer.is_whole)
    return Figures(
        classes={name: _of_class([one for one in answers if one.class_ == name], targets_ms[name]) for name in SHARES},
        seconds=round(seconds, 1),
        useful_tokens=useful,
        useful_per_second=round(useful / seconds, 1),
        late_ms_p95=round(1000 * (quantile([answer.late_seconds for answer in answers], 0.95) or 0.0), 1),
        running_mean=_mean([one.running for one in samples]),
        waiting_mean=_mean([one.waiting for one in samples]),
        cap_lowest=min((one.cap for one in samples if one.cap is not None), default=None),
        cap_mean=_mean([one.cap for one in samples if one.cap is not None]),
        cpu_seconds=dict(sum((Counter(played.cpu) for played in times), Counter[str]())),
        reasons=Counter(answer.reason for answer in answers if not answer.is_whole),
    )


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that `share` of them do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _of_class(answers: Sequence[Answer], target_ms: int) -> ClassFigures:
    ttfts = [answer.ttft for answer in answers if answer.ttft is not None]
    outcomes = [answer.outcome for answer in answers]
    in_target = sum(ttft * 1000 <= target_ms for ttft in ttfts)
    return ClassFigures(
        arrived=len(answers),
        served=outcomes.count("served"),
        refused=outcomes.count("refused"),
        cut=outcomes.count("cut"),
        failed=outcomes.count("failed"),
        ttft_median=_rounded(statistics.median(ttfts) if ttfts else None),
        ttft_p95=_rounded(quantile(ttfts, 0.95)),
        in_target_percent=round(100 * in_target / len(answers), 1) if answers else 0.0,
    )


def _mean(values: Sequence[int]) -> float | None:
    return round(statistics.mean(values), 1) if values else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
