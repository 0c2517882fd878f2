"""The body that an engine gets: the few edits we make to what a client sent stand here and in its endpoint's `edit`."""

from collections.abc import Sequence

import orjson

from backends.engines.priority import priority_of
from backends.fleet import Replica
from gateway.api.call import Call
from gateway.api.chat_messages import developer_as_system
from gateway.api.order import Order
from gateway.api.salts import Salts

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
    "media_io_kwargs",
    "ec_transfer_params",
    "logits_processors",
    "prompt_embeds",
    # SGLang's: hosts that it connects to, whose cache and whose session, files and code that it loads.
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "rid",
    "extra_key",
    "session_params",
    "lora_path",
    "custom_logit_processor",
    "custom_params",
    "custom_labels",
    "ngram_corpus_id",
    "id_slot",
    "lora",
    # Names of their own that engines have for `max_tokens`, `n` and `top_logprobs`.
    "n_predict",
    "n_cmpl",
    "max_new_tokens",
    "n_probs",
    # Ours: the order's class was made of it, and engines ignore it.
    "service_tier",
)

_ENGINE_ONLY = frozenset(ENGINE_ONLY)
_HEADERS = ((b"content-type", b"application/json"), (b"accept", b"*/*"))


def engine_body(call: Call, order: Order, replica: Replica, salts: Salts) -> bytes:
    """The model's own name, output capped at what plan and context leave, fields that choose engine internals removed, the
    class's priority and the account's salt where the engine heeds them, and what the endpoint itself edits."""
    body = dict(call.body)
    if not body.keys().isdisjoint(_ENGINE_ONLY):
        for field in ENGINE_ONLY:
            body.pop(field, None)
    body["model"] = replica.engine_model
    priority = priority_of(replica, order.service_class)
    if priority is not None:
        body["priority"] = priority
    salts.put_in(body, replica, order.account)
    _cap_output(body, call, order)
    if call.endpoint.input_field == "messages" and not order.model.developer_role:
        body["messages"] = developer_as_system(body["messages"])
    call.endpoint.edit(body, replica, call.stream)
    return orjson.dumps(body)


def engine_headers(order: Order, replica: Replica) -> Sequence[tuple[bytes, bytes]]:
    """All of them: of a client's own, none is passed on."""
    name, priority = replica.engine.priority_header, priority_of(replica, order.service_class)
    if name is None or priority is None:
        return _HEADERS
    return (*_HEADERS, (name, b"%d" % priority))


def output_limit(call: Call, order: Order) -> int | None:
    """How much an engine may write: what the client wants, within what plan and context leave. None: nothing is said."""
    wanted = order.output_default if call.output_tokens is None else call.output_tokens
    if wanted is None or order.output_max is None:
        return wanted
    return min(wanted, order.output_max)


def _cap_output(body: dict[str, object], call: Call, order: Order) -> None:
    wanted = output_limit(call, order)
    fields = call.endpoint.output_fields
    named = [field for field in fields if field in body]
    # Two of them, or one that is null, are read differently by different engines: then one of ours stands for both.
    if wanted != call.output_tokens or len(named) != (call.output_tokens is not None):
        for field in named:
            del body[field]
        if wanted is not None:
            body[fields[0]] = wanted
