"""llama.cpp's own server: the engine of `make up`, on any CPU."""

from backends.engines.kind import EngineKind, Gauges

LLAMACPP = EngineKind(
    name="llamacpp",
    health_path="/health",  # 503 while the model loads
    metrics_path="/metrics",  # 501 unless started with --metrics
    gauges=Gauges(
        running="llamacpp:requests_processing",
        waiting="llamacpp:requests_deferred",
        kv_use=None,
        preemptions=None,
        steps="llamacpp:n_decode_total",
    ),
    priority=None,
    lacks=frozenset({"priority", "dimensions"}),
    lacks_endpoints=frozenset({"score"}),
    seen_with="b11549 on a CPU",
)
