"""`/v1/embeddings`: texts in, one vector each out, in the format that was asked for."""

import base64
import binascii
import json
import sys
from array import array
from typing import Any

import orjson

from backends.fleet import Replica
from gateway.api.chunks import parse_answer
from gateway.api.dialect import Question, Whole
from gateway.api.endpoint import Asked, Body, Endpoint
from gateway.api.faults import EngineRefused
from gateway.api.sse import StreamBroke
from gateway.api.whole_only import WholeOnly, is_number, listed, texts_in, tokens_of
from gateway.errors import Refusal, wrong
from gateway.progress import Usage

# An engine's usage object fits into it.
_USAGE_BYTES = 1024


def _input(body: Body) -> Asked:
    """Texts alone. What engines read besides (`messages`, with images by address) is refused rather than passed."""
    if "messages" in body:
        raise Refusal(400, "messages are not embedded here; send text as input.", param="messages", code="invalid_value")
    given = body.get("input")
    if isinstance(given, list) and given and type(given[0]) in (int, list):
        raise Refusal(
            400,
            "input must be text. Token ids belong to one tokenizer, and with this model's they would give wrong vectors without "
            "an error. Send strings; in LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False).",
            param="input",
            code="token_ids_not_supported",
        )
    if body.get("encoding_format") not in (None, "float", "base64"):
        raise wrong("encoding_format", '"float" or "base64"')
    return Asked(prompts=1, items=len(texts_in(body, "input")))


def _held_to_dimensions(body: Body, replica: Replica, stream: bool) -> None:
    """Nothing is changed. Raises: EngineRefused where longer vectors than were asked for would come without a word."""
    if body.get("dimensions") is not None and "dimensions" in replica.engine.lacks:
        raise EngineRefused(400, "The engine of this model makes vectors of one length only; leave out dimensions.", "dimensions")


class Vectors(WholeOnly):
    """`/v1/embeddings`. Older clients ask for base64, and read a list of numbers as bytes of a vector with a fourth of its
    dimensions: so what an engine sends in the other format is converted."""

    def whole(self, body: bytes, question: Question) -> Whole:
        given = question.body["input"]
        wanted = 1 if isinstance(given, str) else len(given)
        in_base64 = question.body.get("encoding_format") == "base64"
        if _is_as_asked(body, wanted, in_base64):
            return Whole(_usage_in(body), is_empty=False)
        parsed = parse_answer(body)
        for item in listed(parsed, "data", wanted):
            item["embedding"] = _as_base64(item.get("embedding")) if in_base64 else _as_numbers(item.get("embedding"))
        return Whole(tokens_of(parsed.get("usage")), is_empty=False, body=orjson.dumps(parsed))


def _is_as_asked(body: bytes, wanted: int, in_base64: bool) -> bool:
    """By substring search: parsing 2,048 vectors would hold everyone up for a tenth of a second. Quotes inside JSON strings are
    escaped, so none of these can be a text's."""
    start = b'"embedding":' + (b'"' if in_base64 else b"[")
    end = b'"' if in_base64 else b"]"
    is_whole = body.count(start) == wanted and start + end not in body
    # A number that is none comes as null, and what is in a list has no name before it.
    return is_whole and (in_base64 or body.count(b"null") == body.count(b":null"))


def _usage_in(body: bytes) -> Usage:
    at = body.rfind(b'"usage":')
    if at < 0:
        return Usage()
    text = body[at + len(b'"usage":') : at + _USAGE_BYTES].decode("utf-8", "replace").lstrip()
    try:
        return tokens_of(json.JSONDecoder().raw_decode(text)[0])
    except json.JSONDecodeError:
        return Usage()


def _as_base64(vector: object) -> str:
    """Little-endian float32, as OpenAI's clients read it. Raises: StreamBroke."""
    if isinstance(vector, str) and vector:
        return vector
    return base64.b64encode(_little_endian(array("f", _as_numbers(vector))).tobytes()).decode()


def _as_numbers(vector: object) -> list[Any]:
    """Raises: StreamBroke when it is no vector, or an empty one."""
    if isinstance(vector, str) and vector:
        try:
            raw = base64.b64decode(vector, validate=True)
            return list(_little_endian(array("f", raw)))
        except (binascii.Error, ValueError):
            raise StreamBroke("the engine sent a vector that is not base64 of float32") from None
    if not isinstance(vector, list) or not vector or not all(is_number(number) for number in vector):
        raise StreamBroke("the engine sent a vector without numbers")
    return vector


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


EMBEDDINGS = Endpoint(
    path="/v1/embeddings",
    name="embeddings",
    dialect=Vectors(),
    ask=_input,
    edit=_held_to_dimensions,
    input_field="input",
    kinds=frozenset({"embedding"}),
    streams=False,
)
