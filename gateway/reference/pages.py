"""The pages that cost nothing, and the bodies of their answers."""

from typing import Any, NamedTuple

from gateway.reference.shapes import Schema, anything, flag, list_of, maybe, record, ref, text, whole


class Page(NamedTuple):
    """`schema` is None where the answer is no JSON; `other_schema` is that with `anthropic-version`. `failures` are the statuses
    that it may answer besides 200."""

    path: str
    name: str
    summary: str
    said: str
    schema: str | None = None
    other_schema: str | None = None
    kind: str = "application/json"
    needs_key: bool = False
    failures: tuple[int, ...] = ()
    parameters: tuple[Schema, ...] = ()


_ANTHROPIC: Schema = {
    "name": "anthropic-version",
    "in": "header",
    "description": "With it, the answer has Anthropic's shape, and so have errors.",
    "schema": {"type": "string"},
}
_KEYED = (401, 403, 429, 500, 503)
PAGES = (
    Page(
        "/v1/models",
        "models",
        "What is served",
        "The models, with what is needed to choose one: OpenAI's fields, OpenRouter's names beside them, and tier and fare. "
        "What nobody has shown is null. With `anthropic-version`, a page of Anthropic's list: `limit`, `after_id`, `before_id`.",
        schema="ModelList",
        other_schema="AnthropicModelPage",
        needs_key=True,
        failures=(400, *_KEYED),
        parameters=(_ANTHROPIC,),
    ),
    Page(
        "/v1/models/{model}",
        "model",
        "One model",
        "By its id or an alias, also one with a slash in it.",
        schema="Model",
        other_schema="AnthropicModel",
        needs_key=True,
        failures=(400, *_KEYED, 404),
        parameters=(
            {
                "name": "model",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
                "description": "An id or an alias.",
                "example": "smollm2-135m-instruct",
            },
            _ANTHROPIC,
        ),
    ),
    Page(
        "/v1/key",
        "key",
        "What your key may do, and what is left of today",
        "The plan, its limits, what is used, and when the day starts anew. It costs nothing.",
        schema="Key",
        needs_key=True,
        failures=_KEYED,
    ),
    Page(
        "/v1/queue/{request_id}",
        "queue",
        "Where a waiting call stands",
        "Of a call of this key that waits for a GPU, by its `x-request-id`, which a stream has before its answer.",
        schema="QueueEntry",
        needs_key=True,
        failures=(*_KEYED, 404),
        parameters=(
            {
                "name": "request_id",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
                "description": "The call's `x-request-id`.",
            },
        ),
    ),
    Page("/healthz", "healthz", "Whether the process lives", "For orchestrators.", schema="Health"),
    Page(
        "/readyz",
        "readyz",
        "Whether it takes calls",
        "503 while it drains, or can't check limits: for load balancers. The reasons are on the operators' port.",
        schema="Readiness",
        failures=(503,),
    ),
    Page("/openapi.json", "openapi", "This document, for machines", "OpenAPI 3.1.", schema="Document"),
    Page("/docs", "docs", "This document, for people", "One page, without scripts and without other hosts.", kind="text/html"),
    Page("/llms.txt", "llms", "This document, for assistants", "A short guide in Markdown.", kind="text/plain"),
    Page("/llms-full.txt", "llms_full", "This document, in Markdown", "All of it.", kind="text/plain"),
)

SCHEMAS: dict[str, Schema] = {
    "Model": record(
        "A model as it is served here, to this key.",
        "id object created owned_by kind tier fare available endpoints supported_parameters",
        id=text("What you send as `model`."),
        object=text("The kind of this object.", const="model"),
        created=whole("Always 0: entries of the catalogue have no birthday."),
        owned_by=text("Always `faregate`."),
        name=text("For people."),
        hugging_face_id=text("Where the weights are from."),
        context_length=maybe(whole("Tokens of prompt and output together.")),
        architecture=record(
            "What goes in and comes out; null where it is not known.",
            input_modalities=maybe(list_of({"type": "string", "enum": ["text", "image", "audio"]})),
            output_modalities=maybe(list_of({"type": "string", "enum": ["text", "embeddings"]})),
        ),
        top_provider=record(
            "This installation.",
            context_length=maybe(whole("As above.")),
            max_completion_tokens=maybe(whole("The longest output with your plan.")),
        ),
        per_request_limits=record(
            "Of your plan.",
            prompt_tokens=maybe(whole("Checked as 4 bytes each; null: the context.")),
            completion_tokens=maybe(whole("null: the context.")),
        ),
        supported_parameters=list_of({"type": "string"}, "Fields that its engines are known to heed; others pass too."),
        aliases=list_of({"type": "string"}, "Further names of it."),
        kind=text("What it is for.", enum=["chat", "completion", "embedding", "rerank"]),
        tier=text("Which plans open it.", enum=["free", "pro", "premium", "enterprise"]),
        fare=whole("Fare units of one request; the fare is this, times `n` and prompts, times batches of items.", minimum=1),
        items_per_fare=maybe(whole("Embedding inputs or documents that one fare covers.", minimum=1)),
        available=flag("Whether your plan and your key may use it."),
        capabilities=record(
            "Each true, false, or null where nobody has shown it.",
            tools=maybe(flag("Calls tools.")),
            vision=maybe(flag("Sees.")),
            json_schema=maybe(flag("Keeps to a JSON Schema.")),
        ),
        precision=maybe(list_of({"type": "string"}, "What its weights are served in; several where replicas differ.")),
        endpoints=list_of({"type": "string"}, "Where it is served."),
    ),
    "ModelList": record(
        "All that is served.", "object data", object=text("The kind of this object.", const="list"), data=list_of(ref("Model"))
    ),
    "AnthropicModelPage": record(
        "Anthropic's list, a page of it.",
        "data has_more",
        data=list_of(ref("AnthropicModel")),
        has_more=flag("Whether there are more."),
        first_id=maybe(text("The first of this page.")),
        last_id=maybe(text("The last of it.")),
    ),
    "AnthropicModel": record(
        "Anthropic's shape.",
        "type id display_name created_at",
        type=text("", const="model"),
        id=text("What you send as `model`."),
        display_name=text("For people."),
        created_at=text("Not known, so the beginning of 1970."),
    ),
    "Key": record(
        "Your key.",
        "object id account plan limits used remaining resets_at",
        object=text("The kind of this object.", const="key"),
        id=text("The key's id; the key itself is shown once, when it is made."),
        account=text("Whose it is."),
        plan=anything(
            "`code`, `version`, `name`, `class`; `source`: what gives it (account, subscription, trial, grant, contract); "
            "`until`: when it may be another, null where nothing says so."
        ),
        limits=anything(
            "Requests a day and a minute, calls at once, tokens in and out, `n`, images. null: no limit of the plan's."
        ),
        used=whole("Fare units of today, of the account.", minimum=0),
        remaining=maybe(whole("Of today; null: without limit.", minimum=0)),
        key_used=whole("Fare units of today, of this key, those of packs too.", minimum=0),
        packs=maybe(
            anything("Fare units beyond the quota: `left`, `used_this_month`, `left_this_month` (of the account's own cap).")
        ),
        open_calls=whole("Calls of the account that run now.", minimum=0),
        resets_at=text("The next midnight, UTC.", format="date-time"),
        expires_at=maybe(text("When this key ends.", format="date-time")),
        allowed_models=maybe(list_of({"type": "string"}, "The only models of this key; null: all of the plan.")),
    ),
    "QueueEntry": record(
        "A call that waits, or did a moment ago.",
        "object id state model class position estimate_ms queue_ms",
        object=text("The kind of this object.", const="queue.entry"),
        id=text("The call's id."),
        state=text("Whether it still waits.", enum=["waiting", "served"]),
        model=text("What it asked for."),
        **{"class": text("The class of its plan.")},
        position=maybe(whole("How many are before it.", minimum=0)),
        estimate_ms=maybe(whole("How long it may still take.", minimum=0)),
        queue_ms=whole("How long it has waited.", minimum=0),
    ),
    "Health": record("Alive.", "status", status=text("", const="alive")),
    "Readiness": record("Ready or not.", "ready", ready=flag("Whether it takes calls.")),
    "Document": anything("OpenAPI."),
}
EXAMPLES: dict[str, Any] = {
    "Model": {
        "id": "smollm2-135m-instruct",
        "object": "model",
        "created": 0,
        "owned_by": "faregate",
        "name": "SmolLM2 135M Instruct",
        "hugging_face_id": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "context_length": 8192,
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "top_provider": {"context_length": 8192, "max_completion_tokens": 2048},
        "per_request_limits": {"prompt_tokens": 32768, "completion_tokens": 2048},
        "supported_parameters": ["max_tokens", "seed", "stop", "temperature"],
        "aliases": ["smollm2"],
        "kind": "chat",
        "tier": "free",
        "fare": 1,
        "items_per_fare": None,
        "available": True,
        "capabilities": {"tools": None, "vision": False, "json_schema": None},
        "precision": None,
        "endpoints": ["/v1/chat/completions", "/v1/completions"],
    },
    "Key": {
        "object": "key",
        "id": "019ad8f2-0000-7000-8000-000000000000",
        "account": "acme",
        "plan": {"code": "free", "version": 1, "name": "Free", "class": "free", "source": "account", "until": None},
        "limits": {"requests_per_day": 60, "requests_per_minute": 10, "concurrency": 2},
        "used": 12,
        "remaining": 48,
        "key_used": 12,
        "packs": None,
        "open_calls": 0,
        "resets_at": "2026-12-02T00:00:00Z",
        "expires_at": None,
        "allowed_models": None,
    },
}
