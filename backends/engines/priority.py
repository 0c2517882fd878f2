"""Which number tells an engine whose request goes first."""

from types import MappingProxyType

from backends.fleet import Replica

# Ten apart, so that there is room between two classes. It is also the distance from which SGLang takes a running request's
# place for a waiting one (`--priority-scheduling-preemption-threshold`); it goes on with it later.
_LOWER_FIRST = MappingProxyType({"enterprise": 10, "premium": 20, "pro": 30, "free": 40, "batch": 50})
_MIRROR = 60


def priority_of(replica: Replica, service_class: str) -> int | None:
    """What to tell it of a request of this class; None for an engine that does not heed any."""
    polarity = replica.engine.priority
    if polarity is None or not replica.has_priority:
        return None
    number = _LOWER_FIRST[service_class]
    return number if polarity == "lower_first" else _MIRROR - number
