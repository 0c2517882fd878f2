"""What a call asks for, read from its body; and the body that an engine gets: the few edits we make stand here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from gateway.errors import Refusal

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
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens")
# Parts of a message that are no text; their size is the body limit's business.
MEDIA = frozenset({"image_url", "image", "input_audio", "audio", "video_url", "audio_url", "file"})
# Counts past this are refused before any arithmetic on them.
COUNT_MAX = 2**31 - 1


class Asked(NamedTuple):
    """What the input holds."""

    prompts: int
    images: int = 0


@dataclass(slots=True)
class Call:
    """One request as understood: `generations` is n times the prompts; `output_tokens` is what the client set, or None."""

    endpoint: "Endpoint"
    body: dict[str, Any]
    body_bytes: int
    model: str
    stream: bool
    generations: int
    images: int
    wants_usage: bool
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one paid endpoint is read. `ask` checks the input and counts what is in it."""

    path: str
    name: str
    chat: bool
    ask: Callable[[dict[str, Any]], Asked]


def read_call(endpoint: Endpoint, body: dict[str, Any], body_bytes: int) -> Call:
    """Raises: Refusal (400), naming the field and what it must be."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _wrong("model", "a model's name; GET /v1/models lists them")
    stream = body.get("stream", False)
    if stream is None:
        stream = False
    elif not isinstance(stream, bool):
        raise _wrong("stream", "true or false")
    asked = endpoint.ask(body)
    return Call(
        endpoint=endpoint,
        body=body,
        body_bytes=body_bytes,
        model=model,
        stream=stream,
        generations=_generations(body) * asked.prompts,
        images=asked.images,
        wants_usage=_wants_usage(body, stream),
        output_tokens=min([_count(body, field, 1) for field in OUTPUT_FIELDS if body.get(field) is not None], default=None),
    )


def _generations(body: dict[str, Any]) -> int:
    """`best_of` makes the engine run that many, however few it returns."""
    wanted = _count(body, "n", 1) if body.get("n") is not None else 1
    return max(wanted, _count(body, "best_of", 1)) if body.get("best_of") is not None else wanted


def _wants_usage(body: dict[str, Any], stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise _wrong("stream_options", "an object")
    if not stream:
        raise Refusal(400, "stream_options is only allowed when stream is true; remove it.", param="stream_options")
    return bool(options.get("include_usage"))


def _count(body: dict[str, Any], field: str, least: int) -> int:
    value = body[field]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= COUNT_MAX:
        raise _wrong(field, f"a whole number of at least {least}")
    return value


def _wrong(field: str, must_be: str) -> Refusal:
    return Refusal(400, f"{field} must be {must_be}.", param=field, code="invalid_value")


def text_bytes(call: Call) -> int:
    """Bytes of all that an engine may put into the prompt: the whole body as we write it, less the images' data."""
    whole = len(orjson.dumps(call.body))
    messages = call.body.get("messages")
    return whole - (sum([_media_bytes(message.get("content")) for message in messages]) if isinstance(messages, list) else 0)


def _media_bytes(content: object) -> int:
    """Data in a message's parts that no engine reads as text: data: URLs, and sound in base64."""
    if not isinstance(content, list):
        return 0
    found = 0
    for part in content:
        for name, value in part.items() if isinstance(part, dict) else ():
            data = (value.get("url") or value.get("data")) if isinstance(value, dict) else value
            if name in MEDIA and isinstance(data, str):
                found += len(data)
    return found


def engine_body(call: Call, engine_model: str, output_max: int | None, output_default: int | None) -> bytes:
    """The body that an engine gets. Our edits: the model's own name, usage asked for on streams (its extra chunk is taken out
    again), output capped at what plan and context leave, and fields that choose engine internals removed."""
    body = dict(call.body)
    for field in ENGINE_ONLY:
        body.pop(field, None)
    body["model"] = engine_model
    if call.stream:
        body["stream_options"] = {"include_usage": True}
    wanted = output_default if call.output_tokens is None else call.output_tokens
    if output_max is not None and wanted is not None and wanted > output_max:
        wanted = output_max
    named = [field for field in OUTPUT_FIELDS if field in body]
    # Two of them, or one that is null, are read differently by different engines: then one of ours stands for both.
    if wanted != call.output_tokens or len(named) != (call.output_tokens is not None):
        for field in named:
            del body[field]
        if wanted is not None:
            body["max_tokens"] = wanted
    return orjson.dumps(body)
