"""Words to write JSON Schemas with, so that the reference reads as a list of fields."""

from typing import Any

Schema = dict[str, Any]


def text(said: str, **more: Any) -> Schema:
    return {"type": "string", "description": said, **more}


def whole(said: str, **more: Any) -> Schema:
    return {"type": "integer", "description": said, **more}


def number(said: str, **more: Any) -> Schema:
    return {"type": "number", "description": said, **more}


def flag(said: str, **more: Any) -> Schema:
    return {"type": "boolean", "description": said, **more}


def list_of(items: Schema, said: str = "", **more: Any) -> Schema:
    described = {"description": said} if said else {}
    return {"type": "array", "items": items, **described, **more}


def either(said: str, *kinds: Schema) -> Schema:
    return {"anyOf": list(kinds), "description": said}


def maybe(schema: Schema) -> Schema:
    """Or null."""
    if isinstance(schema.get("type"), str):
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **choices}
    return {"anyOf": [{key: value for key, value in schema.items() if key != "description"}, {"type": "null"}]} | (
        {"description": schema["description"]} if "description" in schema else {}
    )


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(said: str, needed: str = "", **fields: Schema) -> Schema:
    """An object; `needed` are the names of fields that must be there. What is not listed passes."""
    required = {"required": needed.split()} if needed else {}
    return {"type": "object", "description": said, **required, "properties": fields}


def anything(said: str) -> Schema:
    """An object that is passed on as it is."""
    return {"type": "object", "description": said}
