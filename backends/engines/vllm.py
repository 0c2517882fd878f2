"""vLLM, seen with 0.33: the main engine."""

from backends.engines.kind import EngineKind, Gauges

VLLM = EngineKind(
    name="vllm",
    health_path="/health",  # 503 when the engine core is dead
    metrics_path="/metrics",
    gauges=Gauges(
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        kv_use="vllm:kv_cache_usage_perc",
        preemptions="vllm:num_preemptions_total",
        steps="vllm:iteration_tokens_total_count",
        apart="engine",
    ),
    priority="lower_first",  # only with --scheduling-policy priority: `priority = true` in the fleet file says that it runs so
    lacks=frozenset(),
    priority_header=b"x-vllm-priority",  # /v1/messages knows no field for it; embeddings know no header
    reasoning_field="reasoning",
    seen_with="0.32.0 on a CPU",
)
