"""The gateway's metrics: what is counted, and the page that Prometheus reads."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from gateway.class_tally import ClassTally
from gateway.progress import Progress
from gateway.tally import Spread, Tally


class Metrics:
    """The gateway's own registry, so that two gateways in one process (tests) never share a counter."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Tally("faregate_calls", "Calls that ended", ("endpoint", "model", "verdict", "reason"))
        self._refused = Tally("faregate_refused", "Calls refused", ("endpoint", "code"))
        self._fares = Tally("faregate_fares_posted", "Fares posted", ("model",))
        self._tokens = Tally("faregate_tokens", "Tokens, by the engines' counts", ("model", "kind"))
        self._engine_faults = Tally("faregate_engine_faults", "Engine faults", ("replica", "kind"))
        self._total = Spread("faregate_call_seconds", "From the request's arrival to its answer's end")
        self._queue = Spread("faregate_queue_seconds", "Waiting for a slot on a replica")
        self._first = Spread("faregate_first_byte_seconds", "From the request's arrival to the first byte of output")
        for kept in (
            self._calls,
            self._refused,
            self._fares,
            self._tokens,
            self._engine_faults,
            self._total,
            self._queue,
            self._first,
        ):
            self.registry.register(kept)
        self.classes = ClassTally(self.registry)
        self.open_calls = 0
        self.gauge("faregate_open_calls", "Calls being served", lambda: self.open_calls)
        self._pool_gauges = {
            name: Gauge(name, text, ("model",), registry=self.registry)
            for name, text in (
                ("faregate_calls_running", "Calls of this gateway that hold a slot"),
                ("faregate_calls_waiting", "Calls of this gateway that wait for one"),
            )
        }
        self._class_waiting = Gauge(
            "faregate_class_waiting", "Calls of this gateway that wait for a slot", ("model", "class"), registry=self.registry
        )
        self._replicas: set[str] = set()
        self._replica_gauges = {
            name: Gauge(name, text, ("replica",), registry=self.registry)
            for name, text in (
                ("faregate_replica_cap", "Calls that the replica is given at once, by its own reports"),
                ("faregate_replica_report_age_seconds", "Since the replica's last report; infinite without one"),
            )
        }

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(read)

    def pool_gauge(self, name: str, model: str, read: Callable[[], float]) -> None:
        self._pool_gauges[name].labels(model).set_function(read)

    def class_waiting(self, model: str, class_: str, read: Callable[[], float]) -> None:
        self._class_waiting.labels(model, class_).set_function(read)

    def replica_gauge(self, name: str, replica: str, read: Callable[[], float]) -> None:
        self._replica_gauges[name].labels(replica).set_function(read)

    def replicas_are(self, present: set[str]) -> None:
        """Of those that are gone nothing is said any more."""
        for replica in self._replicas - present:
            for gauge in self._replica_gauges.values():
                gauge.remove(replica)
        self._replicas = present

    def ended(self, ending: tuple[str, str, str, str], *, fare: int, total_ms: int, progress: Progress) -> None:
        """`ending` is endpoint, model, verdict, reason."""
        _, model, verdict, _ = ending
        self._calls.add(1, ending)
        self._total.observe(total_ms, model)
        if verdict == "posted":
            self._fares.add(fare, (model,))
        if progress.queue_ms is not None:
            self._queue.observe(progress.queue_ms, model)
        if progress.first_byte_ms is not None:
            self._first.observe(progress.first_byte_ms, model)
        if progress.prompt_tokens:
            self._tokens.add(progress.prompt_tokens, (model, "prompt"))
        if progress.completion_tokens:
            self._tokens.add(progress.completion_tokens, (model, "completion"))

    def refused(self, endpoint: str, code: str) -> None:
        self._refused.add(1, (endpoint, code))

    def engine_fault(self, replica: str, kind: str) -> None:
        self._engine_faults.add(1, (replica, kind))

    def page(self) -> bytes:
        return generate_latest(self.registry)
