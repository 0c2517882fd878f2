"""TensorRT-LLM's own server, `trtllm-serve`, by the names in its source of 2026; nobody has run Faregate before one yet."""

from backends.engines.kind import EngineKind, Gauges

TRTLLM = EngineKind(
    name="trtllm",
    health_path="/health",
    metrics_path="/prometheus/metrics",  # its /metrics are other numbers, as JSON
    gauges=Gauges(
        running="trtllm_num_requests_running",
        waiting="trtllm_num_requests_waiting",
        kv_use="trtllm_kv_cache_utilization",
        preemptions=None,
    ),
    priority=None,
    lacks=frozenset({"priority"}),
    # By its documentation it has chats, text completions and the list of models.
    lacks_endpoints=frozenset({"responses", "messages", "count_tokens", "embeddings", "rerank", "score"}),
    seen_with="not run: names by its source, metrics/collector (050f80d)",
)
