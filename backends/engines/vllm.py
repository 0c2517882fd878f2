"""vLLM, seen with 0.33: the main engine."""

from backends.engines.kind import EngineKind, Gauges

VLLM = EngineKind(
    name="vllm",
    health_path="/health",  # 503 when the engine core is dead
    metrics_path="/metrics",
    gauges=Gauges(running="vllm:num_requests_running", waiting="vllm:num_requests_waiting", kv_use="vllm:kv_cache_usage_perc"),
    priority="lower_first",  # only with --scheduling-policy priority; otherwise any but 0 is refused
    lacks=frozenset(),
)
