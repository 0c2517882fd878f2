"""Counters and histograms for one thread: a dictionary and a list, read by prometheus_client when its page is asked for.

prometheus_client's own take a lock and walk the buckets at each observation: 8 metrics cost a call about 15 us that way.
"""

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

BUCKETS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000)


class Tally(Collector):
    """A counter with labels."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, count: int, labels: tuple[str, ...]) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + count

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Spread(Collector):
    """A histogram by one label, observed in whole milliseconds and told in seconds."""

    def __init__(self, name: str, text: str, label: str = "model") -> None:
        self._name, self._text, self._label = name, text, label
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, int] = {}

    def observe(self, milliseconds: int, of: str) -> None:
        counts = self._counts.get(of)
        if counts is None:
            counts = self._counts[of] = [0] * (len(BUCKETS_MS) + 1)
            self._sums[of] = 0
        counts[bisect_left(BUCKETS_MS, milliseconds)] += 1
        self._sums[of] += milliseconds

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=(self._label,))
        for of, counts in self._counts.items():
            buckets, so_far = [], 0
            for bound, count in zip((*BUCKETS_MS, None), counts, strict=True):
                so_far += count
                buckets.append(("+Inf" if bound is None else f"{bound / 1000:g}", so_far))
            family.add_metric((of,), buckets, self._sums[of] / 1000)
        yield family
