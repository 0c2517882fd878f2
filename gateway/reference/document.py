"""The OpenAPI 3.1 document: the table of endpoints, in words."""

from typing import Any

from gateway.api.endpoint import Endpoint
from gateway.api.endpoints import ENDPOINTS
from gateway.reference import choices, conversations, failures, headers, pages, vectors
from gateway.reference.pages import Page
from gateway.reference.paid import WORDS, Words
from gateway.reference.shapes import Schema, ref

PARTS = (choices, conversations, vectors, pages, failures)
# Of the API, as in its paths; not of the program.
VERSION = "1"
ABOUT = """The API of a Faregate installation: OpenAI's, with Anthropic's beside it, at one flat fare per request.

Change the base URL and the key in your client, and keep working. The fare is known before a request is sent, from the request
alone: the model's fare, times `n` and the number of prompts, or batches of items. It is held while the call runs and billed if
you got an answer: never for an error, a time-out, an empty answer, or a stream that the engine broke.

Fields that are not listed reach the engine as they are. Answers are relayed as the engine wrote them."""
_PAID_STATUSES = (400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 431, 500, 502, 503, 504)
# Refused before there is an id.
_NO_ID_STATUSES = (408, 431)
# Names of the envelopes that errors come in.
OPENAI, ANTHROPIC, EITHER = "Refused", "AnthropicRefused", "PageRefused"


def openapi() -> dict[str, Any]:
    schemas = {name: schema for part in PARTS for name, schema in part.SCHEMAS.items()}
    for name, example in examples().items():
        schemas[name] = {**schemas[name], "examples": [example]}
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        for path in (endpoint.path, *endpoint.also_at):
            paths[path] = {"post": _call(endpoint, path, WORDS[endpoint.name])}
    for page in pages.PAGES:
        paths[page.path] = {"get": _page(page)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Faregate", "version": VERSION, "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "calls", "description": "What is held, run and billed."},
            {"name": "pages", "description": "What costs nothing."},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": _refusals(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer fare_live_..."},
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "As Anthropic's clients send it.",
                },
            },
        },
    }


def examples() -> dict[str, Any]:
    """By the name of their schema."""
    return {name: example for part in PARTS for name, example in part.EXAMPLES.items()}


def _call(endpoint: Endpoint, path: str, words: Words) -> dict[str, Any]:
    statuses = (*_PAID_STATUSES, 529) if words.is_anthropic else _PAID_STATUSES
    content: dict[str, Any] = {"application/json": {"schema": ref(words.answer)}}
    if words.event is not None:
        content["text/event-stream"] = {"schema": _event(words)}
    known = headers.ALWAYS | headers.RECEIPT | headers.QUEUE | headers.LANE | headers.REPLAY
    if words.is_anthropic:
        known |= headers.TOLD_ANTHROPIC
    return {
        "operationId": endpoint.name + path[: path.index("/", 1)].removeprefix("/v1").replace("/", "_"),
        "tags": ["calls"],
        "summary": words.summary,
        "description": words.said + (f" The same as `{endpoint.path}`." if path != endpoint.path else ""),
        "security": [{"bearer": []}, {"apiKey": []}],
        "parameters": [
            {"name": name, "in": "header", "description": said, "schema": _asked(name)} for name, said in headers.ASKED.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": ref(words.request)}}},
        "responses": {
            "200": {"description": "The answer.", "headers": headers.described(known), "content": content},
            **{str(status): _refused(ANTHROPIC if words.is_anthropic else OPENAI, status) for status in statuses},
        },
    }


def _event(words: Words) -> Schema:
    """One of a stream."""
    data: Schema = {"type": "string", "contentMediaType": "application/json", "contentSchema": ref(words.event or "")}
    if words.last is not None:
        data = {"anyOf": [data, {"const": words.last}]}
    return {"type": "object", "required": ["data"], "properties": {"event": {"type": "string"}, "data": data}}


def _asked(name: str) -> Schema:
    if name == "Idempotency-Key":
        return {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
    return {"type": "integer", "minimum": 0, "maximum": 3_600_000}


def _page(page: Page) -> dict[str, Any]:
    schema = {"type": "string"} if page.schema is None else ref(page.schema)
    if page.other_schema is not None:
        schema = {"anyOf": [schema, ref(page.other_schema)]}
    found = {
        "operationId": page.name,
        "tags": ["pages"],
        "summary": page.summary,
        "description": page.said,
        "parameters": list(page.parameters),
        "responses": {
            "200": {"description": "It.", "content": {page.kind: {"schema": schema}}},
            **{str(status): _page_failure(page, status) for status in page.failures},
        },
    }
    return {**found, "security": [{"bearer": []}, {"apiKey": []}]} if page.needs_key else {**found, "security": []}


def _page_failure(page: Page, status: int) -> Schema:
    if page.needs_key:
        return _refused(EITHER, status)
    return {"description": "Not now.", "content": {page.kind: {"schema": ref(page.schema or "Error")}}}


def _refused(envelope: str, status: int) -> Schema:
    return {"$ref": f"#/components/responses/{envelope}{status}"}


def _refusals() -> dict[str, Any]:
    """Every status in every envelope; those of pages are in the one that the request's `anthropic-version` says."""
    either = {"anyOf": [ref("Error"), ref("AnthropicError")]}
    envelopes = {OPENAI: ref("Error"), ANTHROPIC: ref("AnthropicError"), EITHER: either}
    return {
        f"{envelope}{status}": _refusal(status, schema) for envelope, schema in envelopes.items() for status in failures.MEANINGS
    }


def _refusal(status: int, schema: Schema) -> dict[str, Any]:
    known = headers.REFUSED if status in (409, 429, 503, 529) else {}
    always = headers.ALWAYS if status not in _NO_ID_STATUSES else {}
    return {
        "description": failures.explained(status),
        "headers": headers.described(always | known),
        "content": {"application/json": {"schema": schema}},
    }
