"""`/v1/embeddings` through the whole gateway, by the OpenAI SDK and by hand."""

import base64
import json
import struct
from typing import Any

import httpx2
import pytest
from openai import BadRequestError, OpenAI

from tests.support.engine_fixture import StandInEngine
from tests.support.engine_vectors import DIMENSIONS, vector_of
from tests.support.gateway import Customer, Town, wait_for
from tests.support.stream import Settled, settled
from tests.vectors.conftest import CHAT, EMBEDDER, ITEMS_PER_FARE


def post(town: Town, customer: Customer, **body: Any) -> httpx2.Response:
    url = f"{town.gateway().url}/v1/embeddings"
    return httpx2.post(url, json={"model": EMBEDDER, **body}, headers=customer.headers, timeout=20)


def told(script: dict[str, Any]) -> str:
    return "@engine " + json.dumps(script)


def only_event(town: Town, customer: Customer) -> Settled:
    wait_for(lambda: settled(town.redis_url, customer))
    [event] = settled(town.redis_url, customer)
    return event


def test_the_openai_sdk_gets_the_vectors_it_asked_for(served: Town) -> None:
    """It asks for base64 of its own accord, and decodes it."""
    with OpenAI(base_url=f"{served.gateway().url}/v1", api_key=served.key("free").token) as client:
        one = client.embeddings.create(model=EMBEDDER, input="hello")
        assert one.data[0].embedding == vector_of("hello")
        many = client.embeddings.create(model=EMBEDDER, input=["a", "b", "é"], encoding_format="float", dimensions=4)
        assert [item.embedding for item in many.data] == [vector_of(text, 4) for text in ("a", "b", "é")]
        assert many.usage.prompt_tokens == 3


@pytest.mark.parametrize("encoding_format", ["float", "base64", None])
@pytest.mark.parametrize("other_format", [False, True])
def test_the_format_is_the_one_asked_for_also_when_the_engine_ignores_it(
    served: Town, encoding_format: str | None, other_format: bool
) -> None:
    """A client that reads numbers as base64 gets a vector with a fourth of its dimensions (openai-node#1542, LocalAI#9135)."""
    text = told({"other_format": other_format})
    asked = {} if encoding_format is None else {"encoding_format": encoding_format}
    found = post(served, served.key(), input=text, **asked).json()["data"][0]["embedding"]
    if encoding_format == "base64":
        found = list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(found)))
    assert found == vector_of(text)


def test_what_the_engine_sent_passes_as_it_is(served: Town, standing_engine: StandInEngine) -> None:
    body = {"model": EMBEDDER, "input": ["a", "b"], "encoding_format": "base64", "user": "u", "truncate_prompt_tokens": 5}
    direct = httpx2.post(f"{standing_engine.url}/v1/embeddings", json=body).json()
    ours = post(served, served.key(), **body).json()
    assert {**ours, "id": ""} == {**direct, "id": ""}
    seen = standing_engine.journal()["requests"][-1]["body"]
    assert len(seen.pop("cache_salt")) == 32
    assert seen == body


@pytest.mark.parametrize(("inputs", "fare"), [(1, 1), (ITEMS_PER_FARE, 1), (ITEMS_PER_FARE + 1, 2), (2048, 21)])
def test_the_fare_covers_a_batch_of_inputs(served: Town, inputs: int, fare: int) -> None:
    customer = served.key()
    answer = post(served, customer, input=["x"] * inputs)
    assert (answer.status_code, answer.headers["x-faregate-fare"]) == (200, str(fare))
    event = only_event(served, customer)
    assert (event.verdict, event.event["fare"], event.event["endpoint"]) == ("posted", fare, "embeddings")
    assert event.event["prompt_tokens"] == inputs


def test_two_thousand_vectors_are_converted_as_one_is(served: Town) -> None:
    text = told({"other_format": True})
    answer = post(served, served.key(), input=[text] * 2048, dimensions=200)
    assert len(answer.content) > 1024 * 1024
    assert [item["embedding"] for item in answer.json()["data"]] == [vector_of(text, 200)] * 2048


def test_an_n_that_multiplies_nothing_costs_nothing(served: Town) -> None:
    answer = post(served, served.key("free"), input="x", n=7, best_of=9)
    assert (answer.status_code, answer.headers["x-faregate-fare"]) == (200, "1")


def test_token_ids_of_another_tokenizer_are_refused_and_the_fix_is_named(served: Town) -> None:
    """They give silently wrong vectors (rag_api#115, Cogtrix#2069); LangChain sends them by default."""
    customer = served.key()
    with (
        OpenAI(base_url=f"{served.gateway().url}/v1", api_key=customer.token) as client,
        pytest.raises(BadRequestError) as caught,
    ):
        client.embeddings.create(model=EMBEDDER, input=[[1, 2], [3]])
    assert (caught.value.code, caught.value.param) == ("token_ids_not_supported", "input")
    assert "check_embedding_ctx_length=False" in str(caught.value)
    assert settled(served.redis_url, customer) == []


def test_another_model_is_named_where_one_does_not_fit(served: Town) -> None:
    error = post(served, served.key(), input="x", model=CHAT).json()["error"]
    assert (error["param"], error["code"]) == ("model", "model_not_for_endpoint")
    assert EMBEDDER in error["message"]


def test_the_plans_input_limit_counts_all_inputs_together(served: Town) -> None:
    answer = post(served, served.key("free"), input=["x" * 70_000, "y" * 70_000])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
@pytest.mark.parametrize("script", [{"empty": True}, {"short_by": 1}, {"short_by": 2}])
def test_no_answer_is_a_200_without_its_vectors(served: Town, script: dict[str, Any], encoding_format: str) -> None:
    """Clients take an empty list, or a vector of nothing, for an answer (Cogtrix#2069)."""
    customer = served.key()
    answer = post(served, customer, input=[told(script), "b"], encoding_format=encoding_format)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "engine_failed")
    assert only_event(served, customer).verdict == "voided"


def test_an_engine_without_usage_is_answered_all_the_same(served: Town) -> None:
    customer = served.key()
    assert post(served, customer, input=told({"no_usage": True})).status_code == 200
    assert only_event(served, customer).event["prompt_tokens"] is None
