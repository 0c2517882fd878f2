"""The model list: what is served here, with what a developer has to know to choose."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from backends.fleet import Replica
from gateway.access.caller import Caller
from gateway.api.endpoints import ENDPOINTS
from models.catalogue import Catalogue, Kind, Model, ModelUnknown

# Catalogue entries have no birthday; OpenAI's schema wants a whole number.
CREATED = 0
_SAMPLING = (
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "min_p", "n", "presence_penalty",
    "seed", "stop", "temperature", "top_k", "top_logprobs", "top_p",
)  # fmt: skip
# What every kind of engine heeds, less what it says that it lacks; by OpenRouter's names, which catalogues of models read.
PARAMETERS: Mapping[Kind, Sequence[str]] = MappingProxyType(
    {
        "chat": _SAMPLING,
        "completion": _SAMPLING,
        "embedding": ("encoding_format",),
        "rerank": ("return_documents", "top_n"),
        "audio": (),
    }
)
OUTPUTS: Mapping[Kind, Sequence[str]] = MappingProxyType(
    {"chat": ("text",), "completion": ("text",), "embedding": ("embeddings",)}
)


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
    """OpenAI's four fields, then OpenRouter's names where it has them, then ours. What nobody has shown is null."""
    context = min((replica.context for replica in replicas if replica.context), default=model.context)
    envelope, is_generating = caller.plan.envelope, model.kind in ("chat", "completion")
    output_max = min((limit for limit in (envelope.output_tokens_max, context) if limit is not None), default=None)
    lacks = frozenset().union(*(replica.engine.lacks_endpoints for replica in replicas))
    allowed = caller.allowed_models is None or model.id in caller.allowed_models
    return {
        "id": model.id,
        "object": "model",
        "created": CREATED,
        "owned_by": "faregate",
        "name": model.name,
        "hugging_face_id": model.hf_repo,
        "context_length": context,
        "architecture": {"input_modalities": _inputs(model), "output_modalities": _outputs(model)},
        "top_provider": {"context_length": context, "max_completion_tokens": output_max if is_generating else None},
        "per_request_limits": {
            "prompt_tokens": envelope.input_tokens_max,
            "completion_tokens": envelope.output_tokens_max if is_generating else None,
        },
        "supported_parameters": _parameters(model, replicas),
        "aliases": list(model.aliases),
        "kind": model.kind,
        "tier": model.tier,
        "fare": model.fare,
        "items_per_fare": None if is_generating else model.items_per_fare,
        "available": allowed and caller.plan.opens(model.tier),
        "capabilities": model.capabilities.model_dump(),
        "precision": sorted({replica.precision for replica in replicas if replica.precision}) or None,
        "endpoints": [endpoint.path for endpoint in ENDPOINTS if endpoint.is_served_by(model.kind, lacks)],
    }


def _inputs(model: Model) -> list[str] | None:
    return None if model.inputs is None else list(model.inputs)


def _outputs(model: Model) -> list[str] | None:
    known = OUTPUTS.get(model.kind)
    return None if known is None else list(known)


def _parameters(model: Model, replicas: Sequence[Replica]) -> list[str]:
    known = set(PARAMETERS[model.kind])
    if model.capabilities.tools:
        known |= {"parallel_tool_calls", "tool_choice", "tools"}
    if model.capabilities.json_schema:
        known |= {"response_format", "structured_outputs"}
    return sorted(known.difference(*(replica.engine.lacks for replica in replicas)))
