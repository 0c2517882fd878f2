"""Which number tells an engine whose request goes first."""

from types import MappingProxyType

from backends.engines.kind import EngineKind

# Ten apart, so that there is room between two classes. It is also the distance from which SGLang takes a running request's
# place for a waiting one (`--priority-scheduling-preemption-threshold`); it goes on with it later.
_LOWER_FIRST = MappingProxyType({"enterprise": 10, "premium": 20, "pro": 30, "free": 40, "batch": 50})
_MIRROR = 60


def priority_of(kind: EngineKind, service_class: str) -> int | None:
    """What to write into a request of this class; None for an engine that knows no priorities."""
    if kind.priority is None:
        return None
    number = _LOWER_FIRST[service_class]
    return number if kind.priority == "lower_first" else _MIRROR - number
