"""Somebody else's OpenAI-compatible API, paid by the token: for models that have no engine of one's own, or none that is well."""

from backends.engines.kind import EngineKind, Gauges

UPSTREAM = EngineKind(
    name="upstream",
    health_path="/v1/models",  # such APIs have no page of health, and the list costs nothing
    metrics_path=None,
    gauges=Gauges(running=None, waiting=None, kv_use=None, preemptions=None),
    priority=None,
    lacks=frozenset({"priority"}),
    lacks_endpoints=frozenset({"responses", "messages", "count_tokens", "rerank", "score"}),
    is_paid_by_token=True,
    seen_with="the stand-in engine of the tests; no vendor's API",
)
