"""What each class got: calls served, refused and taken back, waits, tokens, targets met, and which accounts had most of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import nlargest

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from backends import work
from billing.verdict import Outcome
from gateway.progress import Progress
from gateway.tally import Spread

# Labels by account are the ones that could grow without end: only the largest are told, and few more are remembered.
ACCOUNTS_TOLD = 10
ACCOUNTS_KEPT = 1_000
# Of recent work, as the queue sees it (backends/order.py).
HALF_LIFE_SECONDS = 60.0
_REFUSED = {Outcome.SHED.value, Outcome.NO_CAPACITY.value}


@dataclass(slots=True)
class _Got:
    """What one class got so far."""

    served: int = 0
    refused: int = 0
    failed: int = 0
    returned: int = 0
    prompt: int = 0
    completion: int = 0
    attained: int = 0
    missed: int = 0


# Metric, its text, the label beside the class, and of which counts it is made.
_FAMILIES = (
    ("faregate_class_calls", "Calls that ended: served, refused (no GPU), failed", "outcome", ("served", "refused", "failed")),
    ("faregate_class_preempted", "Slots given back to a higher class before any output", "", ("returned",)),
    ("faregate_class_useful_tokens", "Tokens of answers that were served", "kind", ("prompt", "completion")),
    ("faregate_class_ttft", "Streams, by the plan's target for the first token", "target", ("attained", "missed")),
)


class ClassTally(Collector):
    """One look-up a call, then whole numbers; made into metrics when their page is asked for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._got: dict[str, _Got] = {}
        self._waits = Spread("faregate_class_queue_seconds", "Waiting for a slot on a replica", "class")
        self._shares = Shares()
        for kept in (self, self._waits, self._shares):
            registry.register(kept)

    def ended(self, class_: str, account: str, verdict: str, reason: str, progress: Progress, *, target_ms: int | None) -> None:
        """`target_ms` is the plan's for the first token of a stream; None: there is none, or it is no stream."""
        got = self._got.get(class_)
        if got is None:
            got = self._got[class_] = _Got()
        prompt, completion = progress.prompt_tokens or 0, progress.completion_tokens or 0
        got.returned += progress.returned
        if progress.queue_ms is not None:
            self._waits.observe(progress.queue_ms, class_)
        if prompt or completion:
            self._shares.add(class_, account, work.done(prompt, progress.cached_tokens or 0, completion))
        if verdict != "posted":
            if reason in _REFUSED:
                got.refused += 1
            else:
                got.failed += 1
            return
        got.served += 1
        got.prompt += prompt
        got.completion += completion
        if target_ms is not None and progress.first_byte_ms is not None:
            if progress.first_byte_ms <= target_ms:
                got.attained += 1
            else:
                got.missed += 1

    def collect(self) -> Iterator[Metric]:
        for name, text, label, counts in _FAMILIES:
            family = CounterMetricFamily(name, text, labels=("class", label) if label else ("class",))
            for class_, got in self._got.items():
                for count in counts:
                    family.add_metric((class_, count) if label else (class_,), getattr(got, count))
            yield family


class Shares(Collector):
    """Who had how much of a class's recent work, by this gateway's calls. What came since the page was last asked for counts in
    full, what was before it by its age."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._folded_at = now, now()
        self._fresh: dict[tuple[str, str], int] = {}
        self._work: dict[tuple[str, str], float] = {}

    def add(self, class_: str, account: str, done: int) -> None:
        self._fresh[class_, account] = self._fresh.get((class_, account), 0) + done
        if len(self._fresh) > ACCOUNTS_KEPT:
            self._fold()

    def _fold(self) -> None:
        now = self._now()
        kept = 0.5 ** ((now - self._folded_at) / HALF_LIFE_SECONDS)
        amounts = {of: amount * kept for of, amount in self._work.items() if amount * kept >= 1}
        for of, done in self._fresh.items():
            amounts[of] = amounts.get(of, 0.0) + done
        self._work = dict(nlargest(ACCOUNTS_KEPT, amounts.items(), key=lambda entry: entry[1]))
        self._fresh, self._folded_at = {}, now

    def collect(self) -> Iterator[Metric]:
        self._fold()
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
