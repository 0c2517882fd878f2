"""What a call comes to, decided before anything is held: model, fare, output cap, and whether the plan takes it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backends.dedicated import Way
from billing.fare import fare
from billing.plans import Plan
from gateway.access.caller import Caller
from gateway.api.call import Call, text_bytes
from gateway.api.endpoint import Endpoint
from gateway.api.service_tiers import service_class
from gateway.errors import Refusal
from gateway.limits.policy import Numbers, beyond
from gateway.limits.refusals import QuotaUsedUp
from gateway.menu import Menu
from models.catalogue import Model

# So many models are named where another one is needed.
NAMED_MAX = 5


@dataclass(slots=True)
class Order:
    """`output_max` caps what a client asks for; `output_default` is written in where it asks for nothing (None: nothing is)."""

    model: Model
    ways: Sequence[Way]
    fare: int
    output_max: int | None
    output_default: int | None
    account: str
    key: str
    service_class: str
    numbers: Numbers
    ttft_target_ms: int | None = None
    spent: QuotaUsedUp | None = None  # the quota that it is beyond, on the slow lane


def place(call: Call, caller: Caller, menu: Menu) -> Order:
    """Raises: Refusal, saying which limit and what to change; ModelUnknown; FareOutOfBounds."""
    dish, plan = menu.find(call.model, caller.account_name), caller.plan
    model = dish.model
    if not plan.opens(model.tier):
        raise Refusal(
            403,
            f"The model {model.id!r} is in the {model.tier} tier, which the {plan.name} plan does not open.",
            kind="permission_error",
            code="model_not_in_plan",
            param="model",
        )
    if not call.endpoint.is_served_by(model.kind, dish.lacks):
        raise _not_served(call.endpoint, model, menu)
    _check_envelope(call, plan, model)
    tier = service_class(call.body.get("service_tier"), plan.service_class)
    return Order(
        model=model,
        ways=dish.ways,
        fare=fare(model.fare, call.generations, call.items, model.items_per_fare),
        output_max=_output_max(plan, dish.context, call.body_bytes),
        output_default=_output_default(plan, dish.context, call.endpoint),
        account=caller.account_id,
        key=caller.key_id,
        service_class=tier,
        numbers=caller.numbers,
        ttft_target_ms=plan.queue.ttft_target_ms if tier == plan.service_class else None,
    )


def on_slow_lane(order: Order, plan: Plan, spent: QuotaUsedUp) -> Order | None:
    """The same call beyond the plan's quota: in class batch, on what is idle, at no fare. None where the plan has no such lane,
    or the key's own cap is what is spent."""
    if plan.queue.beyond_quota != "slow" or spent.scope != "account" or order.spent is not None:
        return None
    limits = beyond(order.numbers, order.fare)
    if limits is None:
        return None
    return replace(order, fare=0, service_class="batch", numbers=limits, ttft_target_ms=None, spent=spent)


def _not_served(endpoint: Endpoint, model: Model, menu: Menu) -> Refusal:
    able = [dish.model.id for dish in menu.dishes() if endpoint.is_served_by(dish.model.kind, dish.lacks)]
    instead = f"Models that are: {', '.join(able[:NAMED_MAX])}." if able else "No model here is."
    return Refusal(
        400,
        f"The model {model.id!r} ({model.kind}) is not served at {endpoint.path}. {instead} GET /v1/models shows each model's "
        "endpoints.",
        code="model_not_for_endpoint",
        param="model",
    )


def _check_envelope(call: Call, plan: Plan, model: Model) -> None:
    envelope = plan.envelope
    if call.generations > envelope.n_max:
        raise _over("n times the number of prompts", call.generations, envelope.n_max, plan, "n")
    if call.images > envelope.images_max:
        raise _over("the number of images", call.images, envelope.images_max, plan, call.endpoint.input_field)
    if call.images and model.capabilities.vision is False:
        raise Refusal(
            400,
            f"The model {model.id!r} takes no images; GET /v1/models shows those that do.",
            code="model_without_vision",
            param=call.endpoint.input_field,
        )
    limit = envelope.input_bytes_max
    # The whole body is a cheap upper bound of its text.
    if limit is not None and call.body_bytes > limit and (size := text_bytes(call)) > limit:
        raise Refusal(
            400,
            f"The input is {size} bytes of text; the {plan.name} plan takes {envelope.input_tokens_max} tokens, checked as "
            f"{limit} bytes. Send less, or use a plan with a larger input.",
            code="context_length_exceeded",
            param=call.endpoint.input_field,
        )


def _over(what: str, is_now: int, limit: int, plan: Plan, param: str) -> Refusal:
    return Refusal(
        400,
        f"{what} is {is_now}; the {plan.name} plan allows {limit}. Send less in one request.",
        code="over_plan_limit",
        param=param,
    )


def _output_max(plan: Plan, context: int | None, body_bytes: int) -> int | None:
    """The plan's limit and what the context has room for: engines answer 400 to more, and some clients always ask for 32,000."""
    limit = plan.envelope.output_tokens_max
    if context is None:
        return limit
    room = max(context // 4, context - body_bytes // 3)
    return room if limit is None else min(limit, room)


def _output_default(plan: Plan, context: int | None, endpoint: Endpoint) -> int | None:
    """Engines fill the context when nothing is asked for: the plan's limit has to be written in where it is below that."""
    if not endpoint.output_fields:
        return None
    if endpoint.output_default != "plan":
        return endpoint.output_default
    limit = plan.envelope.output_tokens_max
    if limit is None or (context is not None and limit >= context):
        return None
    return limit
