"""The body that an engine gets: the few edits we make to what a client sent stand here and in its endpoint's `edit`."""

from collections.abc import Sequence

import orjson

from backends.engines.priority import priority_of
from backends.fleet import Replica
from gateway.api.call import Call
from gateway.api.order import Order

# Fields that only an operator may set: they choose priority, cache partition, or hosts that an engine connects to.
ENGINE_ONLY = (
    "priority",
    "cache_salt",
    "kv_transfer_params",
    "vllm_xargs",
    "data_parallel_rank",
    "session_id",
    "request_id",
    "mm_processor_kwargs",
    "id_slot",
    "lora",
    # Names of their own that engines have for `max_tokens` and `n`.
    "n_predict",
    "n_cmpl",
    "max_new_tokens",
)

_HEADERS = ((b"content-type", b"application/json"), (b"accept", b"*/*"))


def engine_body(call: Call, order: Order, replica: Replica) -> bytes:
    """The model's own name, output capped at what plan and context leave, fields that choose engine internals removed, the
    class's priority where the engine heeds one, and what the endpoint itself edits."""
    body = dict(call.body)
    for field in ENGINE_ONLY:
        body.pop(field, None)
    body["model"] = replica.engine_model
    if replica.has_priority:
        body["priority"] = priority_of(replica.engine, order.service_class)
    _cap_output(body, call, order)
    call.endpoint.edit(body, replica, call.stream)
    return orjson.dumps(body)


def engine_headers(order: Order, replica: Replica) -> Sequence[tuple[bytes, bytes]]:
    """All of them: of a client's own, none is passed on."""
    name = replica.engine.priority_header
    if not replica.has_priority or name is None:
        return _HEADERS
    return (*_HEADERS, (name, b"%d" % (priority_of(replica.engine, order.service_class) or 0)))


def _cap_output(body: dict[str, object], call: Call, order: Order) -> None:
    wanted = order.output_default if call.output_tokens is None else call.output_tokens
    if order.output_max is not None and wanted is not None and wanted > order.output_max:
        wanted = order.output_max
    fields = call.endpoint.output_fields
    named = [field for field in fields if field in body]
    # Two of them, or one that is null, are read differently by different engines: then one of ours stands for both.
    if wanted != call.output_tokens or len(named) != (call.output_tokens is not None):
        for field in named:
            del body[field]
        if wanted is not None:
            body[fields[0]] = wanted
