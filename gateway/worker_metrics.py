"""What the worker has said of itself, on each gateway's metrics page: it has no port of its own."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

# Where it says so in Valkey.
STATUS_KEY, PROOF_KEY = "faregate:worker", "faregate:reconciled"
_OF_THE_WORKER = (
    ("stream_entries", "faregate_ledger_stream_entries", "Events in the streams, those that are kept for a minute included", 1),
    ("oldest_waiting_ms", "faregate_ledger_waiting_seconds", "How long the oldest event has waited for the ledger", 1000),
)
_OF_THE_PROOF = (
    ("differences", "faregate_reconcile_differences", "What the last proof found and nobody has mended", 1),
    ("at_ms", "faregate_reconcile_timestamp_seconds", "When the last proof began", 1000),
)


async def worker_page(valkey: Valkey) -> bytes:
    """In the form of Prometheus; without a worker, or without Valkey, there is nothing to say."""
    registry = CollectorRegistry()
    for key, figures in ((STATUS_KEY, _OF_THE_WORKER), (PROOF_KEY, _OF_THE_PROOF)):
        facts = await _facts(valkey, key)
        for name, metric, text, divisor in figures:
            if (value := facts.get(name.encode())) is not None:
                Gauge(metric, text, registry=registry).set(int(value) / divisor)
    return generate_latest(registry)


async def _facts(valkey: Valkey, key: str) -> Mapping[bytes, bytes]:
    try:
        flat: Any = await valkey.call("HGETALL", key)
    except (ValkeyUnavailable, ValkeyRefused):
        return {}
    return dict(zip(flat[::2], flat[1::2], strict=True))
