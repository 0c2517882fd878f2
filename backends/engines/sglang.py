"""SGLang, by the names in the source of 0.5.23; nobody has run Faregate before one yet."""

from backends.engines.kind import EngineKind, Gauges

SGLANG = EngineKind(
    name="sglang",
    health_path="/health",
    metrics_path="/metrics",  # only with --enable-metrics
    gauges=Gauges(
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        kv_use="sglang:token_usage",
        apart="dp_rank",  # each rank of a tensor-parallel engine tells the same, and with priorities there is one for each, too
        preemptions=None,  # what it retracts waits again, and is seen there
    ),
    priority="higher_first",  # only with --enable-priority-scheduling
    lacks=frozenset(),
    lacks_endpoints=frozenset({"score"}),  # its own takes token ids of labels
    seen_with="not run: names by the source of 0.5.23",
)
