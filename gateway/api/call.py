"""What a call asks for, read from its body."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.api import bounds
from gateway.api.endpoint import Endpoint
from gateway.api.images import Addressed
from gateway.errors import Refusal, wrong

# Counts past this are refused before any arithmetic on them.
COUNT_MAX = 2**31 - 1


@dataclass(slots=True)
class Call:
    """One request as understood: `generations` is n times the prompts; `items` are embedding inputs or rerank documents;
    `output_tokens` is what the client set, or None."""

    endpoint: Endpoint
    body: dict[str, Any]
    body_bytes: int
    model: str
    stream: bool
    generations: int
    items: int
    images: int
    addressed: Sequence[Addressed]
    wants_usage: bool
    output_tokens: int | None


def read_call(endpoint: Endpoint, body: dict[str, Any], body_bytes: int) -> Call:
    """Raises: Refusal (400), naming the field and what it must be."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise wrong("model", "a model's name; GET /v1/models lists them")
    stream = body.get("stream", False)
    if stream is None:
        stream = False
    elif not isinstance(stream, bool):
        raise wrong("stream", "true or false")
    if stream and not endpoint.streams:
        raise Refusal(400, f"{endpoint.path} does not stream; remove stream.", param="stream", code="invalid_value")
    asked = endpoint.ask(body)
    bounds.check(body)
    return Call(
        endpoint=endpoint,
        body=body,
        body_bytes=body_bytes,
        model=model,
        stream=stream,
        generations=_generations(body, endpoint.generation_fields) * asked.prompts,
        items=asked.items,
        images=asked.images,
        addressed=asked.addressed,
        wants_usage=_wants_usage(body, stream),
        output_tokens=_output_tokens(body, endpoint.output_fields),
    )


def _output_tokens(body: dict[str, Any], fields: tuple[str, ...]) -> int | None:
    return min([_count(body, field, 1) for field in fields if body.get(field) is not None], default=None)


def _generations(body: dict[str, Any], fields: tuple[str, ...]) -> int:
    """The largest counts: `best_of` makes the engine run that many, however few it returns."""
    return max([_count(body, field, 1) for field in fields if body.get(field) is not None], default=1)


def _wants_usage(body: dict[str, Any], stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise wrong("stream_options", "an object")
    if not stream:
        raise Refusal(400, "stream_options is only allowed when stream is true; remove it.", param="stream_options")
    return bool(options.get("include_usage"))


def _count(body: dict[str, Any], field: str, least: int) -> int:
    value = body[field]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= COUNT_MAX:
        raise wrong(field, f"a whole number of at least {least}")
    return value


def text_bytes(call: Call) -> int:
    """Bytes of all that an engine may put into the prompt: the whole body as we write it, less the images' data."""
    return len(orjson.dumps(call.body)) - call.endpoint.media_bytes(call.body)
