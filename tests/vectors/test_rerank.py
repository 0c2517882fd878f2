"""`/v1/rerank` and `/v2/rerank` through the whole gateway."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.engine_fixture import StandInEngine
from tests.support.engine_vectors import score_of
from tests.support.gateway import Customer, Town, wait_for
from tests.support.stream import settled
from tests.vectors.conftest import ITEMS_PER_FARE, RERANKER

DOCUMENTS = ["Paris is the capital of France.", "Bread is baked.", "Berlin lies in Germany."]


def post(town: Town, customer: Customer, path: str = "/v1/rerank", **body: Any) -> httpx2.Response:
    asked = {"model": RERANKER, "query": "capital?", "documents": DOCUMENTS, **body}
    return httpx2.post(town.gateway().url + path, json=asked, headers=customer.headers, timeout=20)


def told(script: dict[str, Any]) -> str:
    return "@engine " + json.dumps(script)


def ranked(query: str = "capital?") -> list[int]:
    return sorted(range(len(DOCUMENTS)), key=lambda index: -score_of(query, DOCUMENTS[index]))


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_come_ranked_and_as_the_engine_sent_them(served: Town, standing_engine: StandInEngine, path: str) -> None:
    customer = served.key("free")
    answer = post(served, customer, path)
    direct = httpx2.post(
        f"{standing_engine.url}/v1/rerank", json={"model": RERANKER, "query": "capital?", "documents": DOCUMENTS}
    ).json()
    assert {**answer.json(), "id": ""} == {**direct, "id": ""}
    assert [result["index"] for result in answer.json()["results"]] == ranked()
    assert answer.headers["x-faregate-fare"] == "1"
    wait_for(lambda: settled(served.redis_url, customer))
    [event] = settled(served.redis_url, customer)
    assert (event.verdict, event.event["endpoint"]) == ("posted", "rerank")
    assert event.event["prompt_tokens"] == answer.json()["usage"]["prompt_tokens"]


def test_documents_may_be_objects_with_a_text(served: Town, standing_engine: StandInEngine) -> None:
    documents = [{"text": text, "id": index} for index, text in enumerate(DOCUMENTS)]
    answer = post(served, served.key(), documents=documents, top_n=None)
    assert [result["index"] for result in answer.json()["results"]] == ranked()
    sent = standing_engine.journal()["requests"][-1]["body"]
    assert len(sent.pop("cache_salt")) == 32
    assert sent == {"model": RERANKER, "query": "capital?", "documents": DOCUMENTS}


@pytest.mark.parametrize("unsorted", [False, True])
def test_top_n_and_the_order_are_kept_to_also_when_the_engine_knows_neither(served: Town, unsorted: bool) -> None:
    query = told({"unsorted": unsorted})
    results = post(served, served.key(), query=query, top_n=2).json()["results"]
    assert [result["index"] for result in results] == ranked(query)[:2]
    scores = [result["relevance_score"] for result in results]
    assert scores == [score_of(query, DOCUMENTS[index]) for index in ranked(query)[:2]]


@pytest.mark.parametrize("unsorted", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_documents_are_returned_if_and_only_if_asked_for(served: Town, wanted: bool, unsorted: bool) -> None:
    """Without `unsorted` the stand-in returns them always, as vLLM does; with it never, as llama.cpp."""
    results = post(served, served.key(), query=told({"unsorted": unsorted}), return_documents=wanted).json()["results"]
    assert len(results) == len(DOCUMENTS)
    for result in results:
        assert (result.get("document") or {}).get("text") == (DOCUMENTS[result["index"]] if wanted else None)
        assert ("document" in result) is wanted


def test_the_fare_covers_a_batch_of_documents(served: Town) -> None:
    assert post(served, served.key(), documents=["x"] * ITEMS_PER_FARE).headers["x-faregate-fare"] == "1"
    assert post(served, served.key(), documents=["x"] * (ITEMS_PER_FARE + 1)).headers["x-faregate-fare"] == "2"


def test_a_ranking_that_misses_documents_is_none(served: Town) -> None:
    customer = served.key()
    answer = post(served, customer, query=told({"short_by": 1}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "engine_failed")
    wait_for(lambda: settled(served.redis_url, customer))
    assert [event.verdict for event in settled(served.redis_url, customer)] == ["voided"]
