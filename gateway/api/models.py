"""The model list: what is served here, with what a developer has to know to choose."""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.fleet import Replica
from gateway.access.caller import Caller
from models.catalogue import Catalogue, Model, ModelUnknown

# Catalogue entries have no birthday; OpenAI's schema wants a whole number.
CREATED = 0


def model_list(catalogue: Catalogue, pools: Mapping[str, Sequence[Replica]], caller: Caller) -> dict[str, Any]:
    """OpenAI's list shape, with capabilities, tier and fare beside it."""
    served = sorted(model_id for model_id, replicas in pools.items() if replicas)
    return {"object": "list", "data": [_card(catalogue.resolve(model_id), pools[model_id], caller) for model_id in served]}


def model_card(catalogue: Catalogue, pools: Mapping[str, Sequence[Replica]], caller: Caller, name: str) -> dict[str, Any]:
    """Raises: ModelUnknown, also for one that no replica serves."""
    model = catalogue.resolve(name)
    if not pools.get(model.id):
        raise ModelUnknown(name, near=sorted(model_id for model_id, replicas in pools.items() if replicas)[:3])
    return _card(model, pools[model.id], caller)


def _card(model: Model, replicas: Sequence[Replica], caller: Caller) -> dict[str, Any]:
    contexts = [replica.context for replica in replicas if replica.context]
    allowed = caller.allowed_models is None or model.id in caller.allowed_models
    return {
        "id": model.id,
        "object": "model",
        "created": CREATED,
        "owned_by": "faregate",
        "context_length": min(contexts, default=model.context),
        "tier": model.tier,
        "fare": model.fare,
        "available": allowed and caller.plan.opens(model.tier),
        "kind": model.kind,
    }
