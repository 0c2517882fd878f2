"""A form that an answer is held to reaches each kind of engine in its own words, or the call is refused: never ignored."""

from typing import Any

import pytest

from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.constraints import CHOICES_MAX, FORM_BYTES_MAX, REGEX_MAX, ConstraintNotHeld
from gateway.errors import Refusal

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
AS_FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


def edited(kind: str, **fields: Any) -> dict[str, Any]:
    """What becomes of these fields of a chat."""
    body = {"messages": HELLO, **fields}
    CHAT.ask(body)
    CHAT.edit(body, Replica.at("http://127.0.0.1:1", name="r", model="m", engine=ENGINE_KINDS[kind], slots=1), False)
    assert body.pop("messages") == HELLO
    return body


@pytest.mark.parametrize(
    ("given", "vllm", "sglang", "llamacpp"),
    [
        (
            {"guided_json": SCHEMA},
            {"structured_outputs": {"json": SCHEMA}},
            {"response_format": AS_FORMAT},
            {"json_schema": SCHEMA},
        ),
        (
            {"guided_json": '{"type":"object"}'},
            {"structured_outputs": {"json": '{"type":"object"}'}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}},
            {"json_schema": {"type": "object"}},
        ),
        (
            {"guided_choice": ["a.b", 'c"\\\n']},
            {"structured_outputs": {"choice": ["a.b", 'c"\\\n']}},
            {"regex": '(a\\.b|c"\\\\\\\n)'},
            {"grammar": 'root ::= "a.b" | "c\\"\\\\\\x0A"'},
        ),
        (
            {"guided_grammar": 'root ::= "x"'},
            {"structured_outputs": {"grammar": 'root ::= "x"'}},
            {"ebnf": 'root ::= "x"'},
            {"grammar": 'root ::= "x"'},
        ),
        (
            {"guided_json_object": True},
            {"structured_outputs": {"json_object": True}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}},
            {"json_schema": {"type": "object"}},
        ),
        ({"guided_regex": "a+"}, {"structured_outputs": {"regex": "a+"}}, {"regex": "a+"}, None),
        (
            {"structured_outputs": {"json": SCHEMA}},
            {"structured_outputs": {"json": SCHEMA}},
            {"response_format": AS_FORMAT},
            {"json_schema": SCHEMA},
        ),
        ({"structured_outputs": {"structural_tag": "{}"}}, {"structured_outputs": {"structural_tag": "{}"}}, None, None),
        ({"guided_json": None, "guided_choice": [], "guided_decoding_backend": "outlines"}, None, None, None),
        (
            {"guided_json": SCHEMA, "guided_decoding_backend": "outlines", "guided_whitespace_pattern": " ?"},
            {"structured_outputs": {"json": SCHEMA, "whitespace_pattern": " ?"}},
            {"response_format": AS_FORMAT},
            {"json_schema": SCHEMA},
        ),
        (
            {"response_format": AS_FORMAT},
            {"response_format": AS_FORMAT},
            {"response_format": AS_FORMAT},
            {"response_format": AS_FORMAT},
        ),
        ({"guided_json": None, "guided_decoding_backend": "outlines"}, {}, {}, {}),
    ],
)
def test_each_kind_is_told_in_its_own_words(given: Any, vllm: Any, sglang: Any, llamacpp: Any) -> None:
    """vLLM takes the old names and ignores them: 200, and free text (vllm#53975)."""
    for kind, expected in (("vllm", vllm), ("sglang", sglang), ("llamacpp", llamacpp)):
        if expected is None:
            with pytest.raises((ConstraintNotHeld, Refusal)):
                edited(kind, **given)
        else:
            assert edited(kind, **given) == expected, kind


def test_llamacpps_text_completions_get_a_response_format_as_a_schema() -> None:
    """They ignore it: "-10000000000000000000000" was the answer to a schema of an object."""
    for given, schema in ((AS_FORMAT, SCHEMA), ({"type": "json_object"}, {"type": "object"})):
        body: dict[str, Any] = {"prompt": "x", "response_format": given}
        COMPLETIONS.ask(body)
        COMPLETIONS.edit(
            body, Replica.at("http://127.0.0.1:1", name="r", model="m", engine=ENGINE_KINDS["llamacpp"], slots=1), False
        )
        assert body == {"prompt": "x", "json_schema": schema}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"guided_json": SCHEMA, "guided_regex": "a"}, "guided_json"),
        ({"guided_json": SCHEMA, "response_format": {"type": "json_object"}}, "guided_json"),
        ({"structured_outputs": {"json": SCHEMA}, "response_format": AS_FORMAT}, "structured_outputs"),
        # llama.cpp answers 500 to this one, as if it were the engine's fault.
        ({"json_schema": SCHEMA, "grammar": "root ::= x"}, "json_schema"),
        ({"guided_json": 7}, "guided_json"),
        ({"guided_json": "{nonsense"}, "guided_json"),
        ({"guided_choice": "a"}, "guided_choice"),
        ({"guided_choice": [1]}, "guided_choice"),
        ({"guided_choice": []}, "guided_choice"),
        ({"guided_choice": ["a"] * (CHOICES_MAX + 1)}, "guided_choice"),
        ({"guided_regex": "a" * (REGEX_MAX + 1)}, "guided_regex"),
        ({"guided_grammar": "a" * FORM_BYTES_MAX}, "guided_grammar"),
        ({"guided_json": {"description": "a" * FORM_BYTES_MAX}}, "guided_json"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": []}, "structured_outputs"),
        ({"structured_outputs": {"json": SCHEMA, "regex": "a"}}, "structured_outputs"),
        ({"structured_outputs": {"choice": [1]}}, "structured_outputs.choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": "b" * FORM_BYTES_MAX}}}}, "response_format"),
    ],
)
def test_forms_that_can_not_be_are_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refusal) as caught:
        edited("vllm", **fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_what_says_nothing_is_no_form() -> None:
    for nothing in ({}, {"response_format": None}, {"response_format": {"type": "text"}}, {"structured_outputs": None}):
        assert edited("vllm", **nothing) == nothing
    assert edited("vllm", guided_json=SCHEMA, response_format={"type": "text"})["structured_outputs"] == {"json": SCHEMA}
