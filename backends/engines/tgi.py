"""Text Generation Inference, which its makers only maintain; by its documentation, nobody has run Faregate before one yet."""

from backends.engines.kind import EngineKind, Gauges

TGI = EngineKind(
    name="tgi",
    health_path="/health",
    metrics_path="/metrics",
    gauges=Gauges(
        running="tgi_batch_current_size",
        waiting="tgi_queue_size",
        kv_use=None,
        preemptions=None,
        steps="tgi_batch_inference_count",
        apart="method",
    ),
    priority=None,
    lacks=frozenset({"priority"}),
    lacks_endpoints=frozenset({"responses", "messages", "count_tokens", "embeddings", "rerank", "score"}),
    seen_with="not run: names by its documentation, reference/metrics (53fdbe6)",
)
