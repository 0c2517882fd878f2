"""What each class got: calls served, refused and taken back, waits, tokens, targets met, and which accounts had most of it."""

import time
from collections.abc import Callable, Iterator
from heapq import nlargest

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from backends import work
from billing.verdict import Outcome
from gateway.progress import Progress
from gateway.tally import Spread, Tally

# Labels by account are the ones that could grow without end: only the largest are told, and few more are remembered.
ACCOUNTS_TOLD = 10
ACCOUNTS_KEPT = 1_000
# Of recent work, as the queue sees it (backends/order.py).
HALF_LIFE_SECONDS = 60.0
_REFUSED = {Outcome.SHED.value, Outcome.NO_CAPACITY.value}


class ClassTally:
    """Labels are the class and one word."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Tally("faregate_class_calls", "Calls that ended: served, refused (no GPU), failed", ("class", "outcome"))
        self._returned = Tally("faregate_class_preempted", "Slots given back to a higher class before any output", ("class",))
        self._tokens = Tally("faregate_class_useful_tokens", "Tokens of answers that were served", ("class", "kind"))
        self._ttft = Tally("faregate_class_ttft", "Streams whose first token came within the plan's target", ("class", "target"))
        self._waits = Spread("faregate_class_queue_seconds", "Waiting for a slot on a replica", "class")
        self._shares = Shares()
        for kept in (self._calls, self._returned, self._tokens, self._ttft, self._waits, self._shares):
            registry.register(kept)

    def ended(self, class_: str, account: str, verdict: str, reason: str, progress: Progress, *, target_ms: int | None) -> None:
        """`target_ms` is the plan's for the first token of a stream; None: there is none, or it is no stream."""
        prompt, completion = progress.prompt_tokens or 0, progress.completion_tokens or 0
        is_served = verdict == "posted"
        self._calls.add(1, (class_, "served" if is_served else "refused" if reason in _REFUSED else "failed"))
        if progress.queue_ms is not None:
            self._waits.observe(progress.queue_ms, class_)
        if progress.returned:
            self._returned.add(progress.returned, (class_,))
        if prompt or completion:
            self._shares.add(class_, account, work.done(prompt, progress.cached_tokens or 0, completion))
        if is_served:
            self._tokens.add(prompt, (class_, "prompt"))
            self._tokens.add(completion, (class_, "completion"))
            if target_ms is not None and progress.first_byte_ms is not None:
                self._ttft.add(1, (class_, "attained" if progress.first_byte_ms <= target_ms else "missed"))


class Shares(Collector):
    """Who had how much of a class's recent work, by this gateway's calls."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._began = now, now()
        self._work: dict[tuple[str, str], float] = {}

    def add(self, class_: str, account: str, done: int) -> None:
        # Weighed up with time instead of the past down: only shares are ever told. Begins anew before doubles overflow.
        age = (self._now() - self._began) / HALF_LIFE_SECONDS
        if age > 60:
            self._work = {of: amount / 2.0**age for of, amount in self._work.items() if amount / 2.0**age >= 1}
            self._began, age = self._now(), 0.0
        self._work[class_, account] = self._work.get((class_, account), 0.0) + done * 2.0**age
        if len(self._work) > ACCOUNTS_KEPT:
            self._work = dict(nlargest(ACCOUNTS_KEPT // 2, self._work.items(), key=lambda entry: entry[1]))

    def collect(self) -> Iterator[Metric]:
        text = "Share of a class's recent work, of the accounts that had most of it"
        family = GaugeMetricFamily("faregate_account_share", text, labels=("class", "account"))
        by_class: dict[str, list[tuple[float, str]]] = {}
        for (class_, account), amount in self._work.items():
            by_class.setdefault(class_, []).append((amount, account))
        for class_, amounts in by_class.items():
            whole = sum(amount for amount, _ in amounts)
            for amount, account in nlargest(ACCOUNTS_TOLD, amounts):
                family.add_metric((class_, account), amount / whole if whole else 0.0)
        yield family
