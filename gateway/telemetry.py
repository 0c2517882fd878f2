"""Metrics and log lines: children looked up once, lines written in batches, so that a call pays a few microseconds for both."""

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gateway.api.progress import Progress

# Lines wait at most this long, or until this many wait.
FLUSH_SECONDS = 0.1
FLUSH_LINES = 500
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """JSON lines to a file descriptor. Never holds a prompt, an answer, a key or a secret: callers pass named facts only."""

    def __init__(self, level: str = "info", descriptor: int = 1, **always: str) -> None:
        self._least = _LEVELS[level]
        self._descriptor = descriptor
        self._always = always
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def debug(self, event: str, **facts: Any) -> None:
        self._line("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        self._line("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._line("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        self._line("error", event, facts)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._waiting = self._waiting, []
        data = memoryview(b"".join(lines))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _line(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        if _LEVELS[level] < self._least:
            return
        record = {"at": datetime.now(UTC), "level": level, "event": event, **self._always, **facts}
        self._waiting.append(orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z))
        if len(self._waiting) >= FLUSH_LINES or level == "error":
            self.flush()
        elif self._timer is None:
            self._schedule()

    def _schedule(self) -> None:
        try:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        except RuntimeError:  # outside a loop (start-up, CLI) there is nobody to flush later
            self.flush()


class Metrics:
    """The gateway's own registry, so that two gateways in one process (tests) never share a counter."""

    _BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "faregate_calls", "Calls that ended", ("endpoint", "model", "verdict", "reason"), registry=self.registry
        )
        self._refused = Counter(
            "faregate_refused", "Calls refused before a fare was held", ("endpoint", "code"), registry=self.registry
        )
        self._fares = Counter("faregate_fares_posted", "Fares posted", ("model",), registry=self.registry)
        self._tokens = Counter("faregate_tokens", "Tokens, by the engines' counts", ("model", "kind"), registry=self.registry)
        self._total = self._histogram("faregate_call_seconds", "From the request's arrival to its answer's end")
        self._queue = self._histogram("faregate_queue_seconds", "Waiting for a slot on a replica")
        self._first = self._histogram("faregate_first_byte_seconds", "From the request's arrival to the first byte of output")
        self._engine_faults = Counter("faregate_engine_faults", "Engine faults", ("replica", "kind"), registry=self.registry)
        self.open_calls = Gauge("faregate_open_calls", "Calls being served", registry=self.registry)
        self._pool_gauges = {
            "faregate_calls_running": Gauge(
                "faregate_calls_running", "Calls of this gateway that hold a slot", ("model",), registry=self.registry
            ),
            "faregate_calls_waiting": Gauge(
                "faregate_calls_waiting", "Calls of this gateway that wait for one", ("model",), registry=self.registry
            ),
        }
        self._children: dict[tuple[str, ...], Any] = {}

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, ("model",), buckets=self._BUCKETS, registry=self.registry)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(read)

    def pool_gauge(self, name: str, model: str, read: Callable[[], float]) -> None:
        self._pool_gauges[name].labels(model).set_function(read)

    def ended(
        self, *, endpoint: str, model: str, verdict: str, reason: str, fare: int, total_ms: int, progress: Progress
    ) -> None:
        self._child(self._calls, endpoint, model, verdict, reason).inc()
        self._child(self._total, model).observe(total_ms / 1000)
        if verdict == "posted":
            self._child(self._fares, model).inc(fare)
        if progress.queue_ms is not None:
            self._child(self._queue, model).observe(progress.queue_ms / 1000)
        if progress.first_byte_ms is not None:
            self._child(self._first, model).observe(progress.first_byte_ms / 1000)
        if progress.prompt_tokens:
            self._child(self._tokens, model, "prompt").inc(progress.prompt_tokens)
        if progress.completion_tokens:
            self._child(self._tokens, model, "completion").inc(progress.completion_tokens)

    def refused(self, endpoint: str, code: str) -> None:
        self._child(self._refused, endpoint, code).inc()

    def engine_fault(self, replica: str, kind: str) -> None:
        self._child(self._engine_faults, replica, kind).inc()

    def _child(self, metric: Any, *labels: str) -> Any:
        key = (metric._name, *labels)  # noqa: SLF001  # labels() takes a lock and builds a tuple of its own each time
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def page(self) -> bytes:
        return generate_latest(self.registry)
