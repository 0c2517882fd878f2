"""What holds an answer to a form, beside `response_format`: vLLM's fields as each kind of engine knows them; pure."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from gateway.errors import Refusal, wrong

Body = dict[str, Any]

# vLLM's names until 0.12. It takes them still, and ignores them: the answer would be free text with status 200.
GUIDED = MappingProxyType(
    {
        "guided_json": "json",
        "guided_regex": "regex",
        "guided_choice": "choice",
        "guided_grammar": "grammar",
        "guided_json_object": "json_object",
    }
)
# How an engine goes about it is the operator's choice.
GUIDED_OPTIONS = ("guided_decoding_backend", "guided_whitespace_pattern")
# Fields of llama.cpp's own, of which it takes one.
_LLAMACPP = ("json_schema", "grammar")
# Kinds that are held to a form by `response_format` alone, as far as anybody has shown.
_JSON_ALONE = frozenset({"trtllm", "tgi", "upstream"})
_FIELDS = frozenset((*GUIDED, *GUIDED_OPTIONS, *_LLAMACPP, "structured_outputs", "response_format"))
_FORMS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"json": (dict, str), "regex": (str,), "choice": (list,), "grammar": (str,), "json_object": (bool,)}
)
_KNOWN = (*_FORMS, "structural_tag")
# A schema or grammar is compiled before the first token, in a thread that others need too.
FORM_BYTES_MAX = 128 * 1024
REGEX_MAX = 4096
CHOICES_MAX = 1000


class ConstraintNotHeld(Exception):
    """The engines of this model can't be held to such a form; answering without it would be worse."""

    def __init__(self, form: str) -> None:
        super().__init__(f"The engines that serve this model can't be held to a {form}; use response_format with a JSON schema.")


def check(body: Body) -> None:
    """Raises: Refusal (400) for two forms at once, one of the wrong type, or one that is too large."""
    if body.keys().isdisjoint(_FIELDS):
        return
    named = [field for field in (*GUIDED, "structured_outputs", *_LLAMACPP) if body.get(field) not in (None, False)]
    if len(named) > 1 or (named and _is_json(body.get("response_format"))):
        other = named[1] if len(named) > 1 else "response_format"
        raise Refusal(400, f"Send only one of {named[0]} and {other}.", param=named[0], code="invalid_value")
    for field in named:
        if field == "structured_outputs":
            _check_outputs(body[field])
        else:
            _check_form(field, GUIDED.get(field, "json" if field == "json_schema" else "grammar"), body[field])
    if body.get("response_format") is not None:
        _check_response_format(body["response_format"])


def translate(body: Body, kind: str) -> None:
    """Changes `body` in place. Raises: ConstraintNotHeld."""
    if body.keys().isdisjoint(_FIELDS):
        return
    given = _taken_out(body, kind)
    if not given:
        if kind == "llamacpp" and "prompt" in body and _is_json(body.get("response_format")):
            _move_response_format(body)
        return
    form, value = next((form, value) for form, value in given.items() if form in _KNOWN and value not in (None, False))
    if kind in _JSON_ALONE and form not in ("json", "json_object"):
        raise ConstraintNotHeld(form)
    if kind == "vllm":
        body["structured_outputs"] = given
    elif form in ("json", "json_object"):
        _write_json(body, kind, _schema(value))
    elif form == "structural_tag":
        raise ConstraintNotHeld("structural tag")
    elif kind == "llamacpp":
        body["grammar"] = _grammar(form, value)
    else:  # SGLang's own fields
        body["ebnf" if form == "grammar" else "regex"] = _one_of(value) if form == "choice" else value


def _taken_out(body: Body, kind: str) -> Body:
    """The form in vLLM's words, out of the body; nothing where it stands there as its engine knows it."""
    if isinstance(outputs := body.get("structured_outputs"), dict) and kind != "vllm":
        return dict(body.pop("structured_outputs"))
    if not any(field in body for field in (*GUIDED, *GUIDED_OPTIONS)):
        return {}
    pattern = body.get("guided_whitespace_pattern")
    given = {form: body.pop(field) for field, form in GUIDED.items() if body.get(field) not in (None, False)}
    for field in (*GUIDED, *GUIDED_OPTIONS):
        body.pop(field, None)
    if given and pattern is not None and outputs is None:
        given["whitespace_pattern"] = pattern
    return given


def _write_json(body: Body, kind: str, schema: Any) -> None:
    if kind == "llamacpp":
        body["json_schema"] = schema
    else:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _move_response_format(body: Body) -> None:
    """Its text completions know none, and ignore it."""
    given = body.pop("response_format")
    body["json_schema"] = given["json_schema"]["schema"] if given["type"] == "json_schema" else {"type": "object"}


def _schema(value: Any) -> Any:
    if value is True:
        return {"type": "object"}
    return orjson.loads(value) if isinstance(value, str) else value


def _grammar(form: str, value: Any) -> str:
    if form == "grammar":
        return str(value)
    if form == "choice":
        return "root ::= " + " | ".join(f'"{_escaped(choice)}"' for choice in value)
    raise ConstraintNotHeld("regular expression")


def _escaped(text: str) -> str:
    """A literal of GBNF, llama.cpp's grammars."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(letter if ord(letter) > 31 else f"\\x{ord(letter):02X}" for letter in quoted)


def _one_of(choices: list[str]) -> str:
    return f"({'|'.join(re.escape(choice) for choice in choices)})"


def _check_outputs(outputs: object) -> None:
    if not isinstance(outputs, dict):
        raise wrong("structured_outputs", "an object")
    forms = [form for form in _KNOWN if outputs.get(form) not in (None, False)]
    if len(forms) != 1:
        raise wrong("structured_outputs", f"one of {', '.join(_FORMS)}")
    if forms[0] in _FORMS:
        _check_form(f"structured_outputs.{forms[0]}", forms[0], outputs[forms[0]])


def _check_form(field: str, form: str, value: Any) -> None:
    is_of_type: bool = isinstance(value, _FORMS[form])
    if not is_of_type or value in ("", []):
        raise wrong(field, {"json": "a JSON schema", "choice": "a list of strings", "json_object": "true"}.get(form, "a string"))
    if form == "choice" and not (len(value) <= CHOICES_MAX and all(isinstance(choice, str) for choice in value)):
        raise wrong(field, f"a list of at most {CHOICES_MAX} strings")
    if form == "regex" and len(value) > REGEX_MAX:
        raise wrong(field, f"at most {REGEX_MAX} characters")
    if form == "json" and isinstance(value, str):
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            raise wrong(field, "a JSON schema") from None
    _check_size(field, value)


def _check_response_format(given: object) -> None:
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        raise wrong("response_format", 'an object with a type: "text", "json_object" or "json_schema"')
    if given["type"] == "json_schema":
        inner = given.get("json_schema")
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict | bool):
            raise wrong("response_format.json_schema", "an object with a name and a schema")
    _check_size("response_format", given)


def _check_size(field: str, value: object) -> None:
    if (size := len(orjson.dumps(value))) > FORM_BYTES_MAX:
        raise wrong(field, f"at most {FORM_BYTES_MAX} bytes; it is {size}")


def _is_json(response_format: object) -> bool:
    return isinstance(response_format, Mapping) and response_format.get("type") not in (None, "text")
