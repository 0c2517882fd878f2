"""The body of a call: read within bounds, parsed once, refused precisely."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from gateway.api.encodings import coding_of, decoded
from gateway.errors import Refusal

# What the JSON library writes at most.
DEPTH_MAX = 254
# Quotation marks written as an escape; a backslash before it that is itself escaped makes it text.
_ESCAPED_QUOTE = re.compile(rb"(?<!\\)(?:\\\\)*\\u0022")
VALUES_MAX = 500_000
NAMED_UP_TO_BYTES = 1024 * 1024
# So much of a key is said back.
SHOWN_KEY = 80
Receive = Callable[[], Awaitable[Any]]


class ClientGone(Exception):
    """The client closed its connection."""


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit_bytes: int) -> bytes:
    """The whole body, decoded; a slow one is cut by the server. Raises: Refusal (413, before it is read whole), ClientGone."""
    coding = coding_of(headers.get(b"content-encoding"))
    _check_content_type(headers.get(b"content-type"))
    declared = headers.get(b"content-length")
    if declared is not None and int(declared) > limit_bytes:
        raise _too_large(limit_bytes)
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message["body"])
        size += len(message["body"])
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        if not message["more_body"]:
            break
    body = b"".join(pieces) if len(pieces) > 1 else bytes(pieces[0])
    return await decoded(body, coding, limit_bytes) if coding else body


def _check_content_type(given: bytes | None) -> None:
    kind = (given or b"application/json").split(b";", 1)[0].strip().lower()
    if kind != b"application/json" and not kind.endswith(b"+json"):
        raise Refusal(
            415,
            f"Content-Type {kind.decode('latin-1')!r} is not supported; send JSON with Content-Type: application/json.",
            code="unsupported_content_type",
        )


def _too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        413, f"The request body is over the limit of {limit_bytes} bytes; send less in one request.", code="request_too_large"
    )


def parse_object(raw: bytes) -> dict[str, Any]:
    """The body as a JSON object (RFC 8259, I-JSON's ban on repeated keys). Raises: Refusal (400) saying what and where."""
    # A parser takes half a microsecond for each value, and everybody waits for it.
    if len(raw) > VALUES_MAX and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > VALUES_MAX:
        raise Refusal(
            400,
            f"The request body has over {VALUES_MAX} commas and brackets; send less in one request.",
            code="request_too_complex",
        )
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _not_json(raw, error) from None
    if not isinstance(parsed, dict):
        raise Refusal(400, f"The request body must be a JSON object, not {_kind(parsed)}.", code="invalid_json")
    try:
        written = orjson.dumps(parsed)
    except TypeError:  # what is read may be nested 1,024 deep, what is written 254
        raise Refusal(400, f"The request body is nested more than {DEPTH_MAX} levels deep.", code="invalid_json") from None
    if written.count(b'"') != _quotes_in(raw):
        raise _repeated_key(raw)
    return parsed


def _quotes_in(raw: bytes) -> int:
    """As a writer spells them, which knows no \\u0022. A parser keeps one of two equal keys, so its output has fewer."""
    spelled_out = len(_ESCAPED_QUOTE.findall(raw)) if b"\\u0022" in raw else 0
    return raw.count(b'"') + spelled_out


def _repeated_key(raw: bytes) -> Refusal:
    """Which key it is takes a second, slow look; that a large body doesn't get, for it holds up everyone."""
    if len(raw) <= NAMED_UP_TO_BYTES:
        try:
            json.loads(raw, object_pairs_hook=_unique)
        except Refusal as named:
            return named
    return Refusal(400, "A key appears twice in one JSON object; send it once.", code="duplicate_key")


def _not_json(raw: bytes, error: orjson.JSONDecodeError) -> Refusal:
    if not raw.strip():
        return Refusal(400, "The request body is empty; send a JSON object.", code="invalid_json")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return Refusal(400, f"The request body is not valid UTF-8 (byte {wrong.start}).", code="invalid_utf8")
    return Refusal(
        400, f"The request body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.", code="invalid_json"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            shown = key[:SHOWN_KEY]
            raise Refusal(
                400, f"The key {shown!r} appears twice in one JSON object; send it once.", code="duplicate_key", param=shown
            )
        found[key] = value
    return found


def _kind(value: object) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
