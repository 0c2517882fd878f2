"""The OpenAPI document says what the code does: each path, each way to be refused, each header; and its examples are so."""

import ast
import json
import re
from typing import Any, cast

import pytest
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator

from gateway.api.call import read_call
from gateway.api.endpoints import ENDPOINTS, PAID
from gateway.api.whole_only import ITEMS_MAX
from gateway.free import FREE, free_app
from gateway.reference import headers
from gateway.reference.document import examples, openapi
from gateway.reference.failures import FAILURES, MEANINGS
from gateway.reference.paid import WORDS
from gateway.reference.shapes import ref
from gateway.wiring import House
from tests.tidy.source import product_files, tree

DOCUMENT = openapi()
# Raised by the server itself, inside the parser.
OF_THE_SERVER = "bad_http"


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def documented(method: str) -> set[str]:
    return {path for path, methods in DOCUMENT["paths"].items() if method in methods}


def test_every_paid_path_is_in_it_and_no_other() -> None:
    assert documented("post") == set(PAID)
    assert {endpoint.name for endpoint in ENDPOINTS} == set(WORDS)


def test_every_free_path_is_in_it_and_no_other() -> None:
    routes = [route for route in free_app(cast("House", None)).routes if isinstance(route, APIRoute)]
    assert {route.path.replace(":path", "") for route in routes} == documented("get")


def test_the_free_pages_that_a_wrong_path_is_told_of_are_served() -> None:
    assert {_unnamed(page.removeprefix("GET ")) for page in FREE} <= {_unnamed(path) for path in documented("get")}


def _unnamed(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_every_operation_says_whether_it_needs_a_key_and_has_a_name_of_its_own() -> None:
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all("security" in operation and operation["summary"] and operation["description"] for operation in operations)


def test_schemas_are_valid_and_every_reference_leads_somewhere() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for target in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT))):
        found = DOCUMENT
        for step in target.split("/"):
            found = found[step]


@pytest.mark.parametrize("name", sorted(examples()))
def test_examples_are_what_their_schemas_say(name: str) -> None:
    validator(ref(name)).validate(examples()[name])


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_example_of_a_request_is_one(endpoint: Any) -> None:
    body = examples()[WORDS[endpoint.name].request]
    assert read_call(endpoint, body, len(json.dumps(body))).model == body["model"]
    assert ("event" in WORDS[endpoint.name]._asdict() and WORDS[endpoint.name].event is not None) == endpoint.streams


def test_every_code_that_a_caller_may_meet_is_explained_and_no_other() -> None:
    met = {code for path in product_files() for code in _codes(tree(path))}
    assert met | {OF_THE_SERVER} == {failure.code for failure in FAILURES if failure.code}


def _codes(module: ast.Module) -> set[str]:
    """Of `Refusal(..., code="...")`, and of what makes one in the table of refusals."""
    found = set()
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func).rpartition(".")[2]
        given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        if name in ("_forbidden", "_unavailable", "_not_now"):
            given += call.args[-1:] if name == "_forbidden" else call.args[1:2]
        if name == "Refusal" or name.startswith("_") or name in ("wrong", "refused"):
            found |= {node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        named = dict(zip(reversed(function.args.args), reversed(function.args.defaults), strict=False))
        found |= {
            default.value
            for argument, default in named.items()
            if argument.arg == "code" and isinstance(default, ast.Constant) and isinstance(default.value, str)
        }
    return found


def test_every_status_is_explained() -> None:
    assert {failure.status for failure in FAILURES} | {529} == set(MEANINGS)


def test_every_header_of_ours_is_explained_and_no_other() -> None:
    written = {
        name.decode()
        for path in product_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(name := node.value, bytes)
        and re.fullmatch(rb"x-faregate-[a-z-]*[a-z]", name)
    }
    told = {name.lower() for name in (headers.ASKED | headers.TOLD)}
    assert written == {name for name in told if name.startswith("x-faregate-")}


def test_the_limit_of_items_is_the_one_that_holds() -> None:
    request = DOCUMENT["components"]["schemas"]["RerankRequest"]["properties"]["documents"]
    assert request["maxItems"] == ITEMS_MAX
    [said] = [failure.said for failure in FAILURES if failure.code == "too_many_items"]
    assert f"{ITEMS_MAX:,}" in said
