"""Libraries with tools, schemas and vectors: each round trip is as many fares as requests, and the engine got what it needs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.clients.conftest import EMBEDDER
from tests.conformance.clients.counting import Counted
from tests.conformance.clients.programs import Machine
from tests.conformance.test_responses import CALL, script
from tests.journeys.conftest import MODEL
from tests.support.engine_vectors import vector_of
from tests.support.gateway import Customer, Town
from tests.support.node import ask

pytestmark = pytest.mark.clients
PROBES = Path(__file__).with_name("probes")
TEXT = "tok tok tok"
PERSON = {"name": "Ada", "age": 36}
SPOKEN = script(chunks=1, text=json.dumps(PERSON))
PYTHON = [
    ("langchain", "python", "chat"), ("pydantic_ai", "python", "chat"), ("agents", "python", "chat"),
    ("agents", "python", "responses"), ("litellm", "python", "chat"), ("llamaindex", "llamaindex", "chat"),
]  # fmt: skip

of_python = pytest.mark.parametrize(("name", "environment", "api"), PYTHON)
of_node = pytest.mark.parametrize("name", ["langchain", "ai-sdk"])


@pytest.fixture
def counts(installation: Town, counted: Callable[[Customer], Counted]) -> Counted:
    return counted(installation.key())


def python(machine: Machine, counts: Counted, name: str, environment: str, **asked: str) -> str:
    """What a probe printed. Its program is read from its file, and what it is asked from its environment."""
    whole = {"base": f"{counts.gateway.url}/v1", "key": counts.customer.token, "model": MODEL, **asked}
    probe = (PROBES / f"{name}_tools.py").read_text(encoding="utf-8")
    done = Machine(machine.home, {"ASKED": json.dumps(whole)}).python(environment, probe)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def node(counts: Counted, how: str, prompt: str = "", model: str = MODEL) -> Any:
    return ask("agents.mjs", base=f"{counts.gateway.url}/v1", key=counts.customer.token, model=model, how=how, prompt=prompt)


def gave_the_result_back(counts: Counted) -> bool:
    """The engine's second request has what the tool said."""
    _, second = counts.received()
    said = [item for item in second.get("messages") or second["input"] if item.get("role") == "tool" or "output" in item]
    return "rain in Paris" in json.dumps(said)


def schema_of(body: dict[str, Any]) -> dict[str, Any]:
    """The form that the engine was told to hold its answer to."""
    form = body["text"]["format"] if "text" in body else body["response_format"]["json_schema"]
    found: dict[str, Any] = form["schema"]
    return found


@of_python
def test_a_tool_is_called_and_its_result_given_back(
    machine: Machine, counts: Counted, name: str, environment: str, api: str
) -> None:
    assert python(machine, counts, name, environment, how="tools", api=api, prompt=script(**CALL)) == TEXT
    assert counts.arrivals() == 2
    assert counts.verdicts() == ["posted", "posted"]
    assert gave_the_result_back(counts)


@of_python
def test_an_answer_is_held_to_a_schema(machine: Machine, counts: Counted, name: str, environment: str, api: str) -> None:
    assert json.loads(python(machine, counts, name, environment, how="schema", api=api, prompt=SPOKEN)) == PERSON
    assert counts.verdicts() == ["posted"]
    (body,) = counts.received()
    assert schema_of(body)["properties"].keys() == PERSON.keys()


@of_node
def test_a_tool_is_called_and_its_result_given_back_in_node(counts: Counted, name: str) -> None:
    assert node(counts, f"{name} tools", script(**CALL))["text"].strip() == TEXT
    assert counts.arrivals() == 2
    assert counts.verdicts() == ["posted", "posted"]
    assert gave_the_result_back(counts)


@of_node
def test_an_answer_is_held_to_a_schema_in_node(counts: Counted, name: str) -> None:
    assert node(counts, f"{name} schema", SPOKEN) == PERSON
    assert counts.verdicts() == ["posted"]
    (body,) = counts.received()
    assert schema_of(body)["properties"].keys() == PERSON.keys()


@of_node
def test_vectors_arrive_as_the_engine_made_them_at_one_fare(counts: Counted, name: str) -> None:
    assert node(counts, f"{name} embeddings", model=EMBEDDER)["vectors"] == [vector_of("a cat"), vector_of("a dog")]
    assert counts.arrivals() == 1
    assert counts.verdicts() == ["posted"]
