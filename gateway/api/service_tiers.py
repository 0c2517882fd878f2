"""OpenAI's `service_tier` as a class of ours: never above the plan's, and below it for who can wait; pure."""

from billing.plans import ServiceClass
from gateway.errors import Refusal

# Anthropic's words too. "priority" is what a plan buys: it can't be had by a field.
_AS_THE_PLAN = frozenset({"auto", "default", "standard", "standard_only", "priority", "scale"})


def service_class(tier: object, plan_class: ServiceClass) -> ServiceClass:
    """Raises: Refusal (400) for a word that is none."""
    if tier is None or (isinstance(tier, str) and tier in _AS_THE_PLAN):
        return plan_class
    if tier == "flex":
        return "batch"
    raise Refusal(400, "service_tier must be auto, default, flex or priority.", param="service_tier", code="invalid_value")
