"""The document as rows to be read: what the page and the Markdown are both written from."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gateway.reference.document import examples
from gateway.reference.shapes import Schema

_BOUNDS = (
    ("minimum", "from {}"), ("exclusiveMinimum", "above {}"), ("maximum", "to {}"), ("minItems", "at least {}"),
    ("maxItems", "at most {}"), ("maxLength", "up to {} characters"), ("default", "{} unless said"),
)  # fmt: skip
_REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')


class Field(NamedTuple):
    """`kind` names other schemas as they are called."""

    name: str
    kind: str
    is_needed: bool
    said: str


class Shape(NamedTuple):
    """An object's fields, and an example of it where there is one."""

    name: str
    said: str
    fields: list[Field]
    example: Any


class Operation(NamedTuple):
    """One method of one path. `event` is the shape of a stream's data, where there is one."""

    method: str
    path: str
    anchor: str
    summary: str
    said: str
    request: Shape | None
    answer: Shape | None
    event: str | None
    statuses: list[str]


def operations(document: dict[str, Any], tag: str) -> list[Operation]:
    return [
        _operation(document, method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag in operation["tags"]
    ]


def nested(document: dict[str, Any]) -> list[Shape]:
    """The shapes that others, and streams, are made of."""
    meant = set(_REFERENCE.findall(json.dumps(document)))
    shown = {asked.name for tag in ("calls", "pages") for found in operations(document, tag) if (asked := found.request)}
    return [
        _shape(document, name)
        for name, schema in document["components"]["schemas"].items()
        if name in meant - shown and "properties" in schema
    ]


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Operation:
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = operation["responses"]["200"]["content"]
    events = answers.get("text/event-stream", {}).get("schema", {}).get("properties")
    return Operation(
        method=method.upper(),
        path=path,
        anchor=operation["operationId"],
        summary=operation["summary"],
        said=operation["description"],
        request=None if asked is None else _shape(document, _name(asked)),
        answer=_answer(document, answers),
        event=None if events is None else _REFERENCE.findall(json.dumps(events))[0],
        statuses=[status for status in operation["responses"] if status != "200"],
    )


def _answer(document: dict[str, Any], answers: dict[str, Any]) -> Shape | None:
    schema = answers.get("application/json", {}).get("schema", {})
    schema = schema.get("anyOf", [schema])[0]
    return _shape(document, _name(schema)) if "$ref" in schema else None


def _shape(document: dict[str, Any], name: str) -> Shape:
    schema = document["components"]["schemas"][name]
    return Shape(name, schema.get("description", ""), list(_fields(schema)), examples().get(name))


def _fields(schema: Schema, above: str = "") -> Iterator[Field]:
    """Those of objects inside are told with their path."""
    for name, field in schema.get("properties", {}).items():
        yield Field(above + name, kind(field), name in schema.get("required", ()), field.get("description", ""))
        inner = field.get("items", field) if field.get("type") == "array" else field
        mark = "[]." if inner is not field else "."
        yield from _fields(inner, f"{above}{name}{mark}")


def kind(schema: Schema) -> str:
    """In words: `string or list of string`."""
    if "$ref" in schema:
        return _name(schema)
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return " or ".join("null" if choice is None else f'"{choice}"' for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(choice) for choice in schema["anyOf"]))
    return ", ".join([_plain(schema), *_bounds(schema)])


def _plain(schema: Schema) -> str:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "array" in types and "items" in schema:
        types = [f"list of {kind(schema['items'])}" if each == "array" else each for each in types]
    return " or ".join(types)


def _bounds(schema: Schema) -> Iterator[str]:
    for name, words in _BOUNDS:
        if name in schema:
            value = schema[name]
            yield words.format(str(value).lower() if isinstance(value, bool) else value)


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]
