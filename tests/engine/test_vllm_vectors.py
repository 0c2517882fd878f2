"""A real vLLM's rerank and score through the whole gateway: the engine's own order and numbers, priced by the batch."""

from typing import Any

import httpx2
import pytest

from tests.engine.conftest import RERANKER
from tests.engine.vllm import VECTORS, Vllm
from tests.support.gateway import Town

pytestmark = pytest.mark.engine
QUERY = "What do cats drink?"
DOCUMENTS = ["Bread is baked in an oven.", "Cats drink water and milk.", "The moon is far away."]


def both(town: Town, engine: Vllm, path: str, body: dict[str, Any]) -> tuple[httpx2.Response, dict[str, Any]]:
    """What the gateway's client gets, and what the engine says when it is asked itself."""
    given = httpx2.post(f"{town.gateway().url}{path}", json={**body, "model": RERANKER}, headers=town.key().headers, timeout=30)
    straight: dict[str, Any] = httpx2.post(f"{engine.url}{path}", json={**body, "model": VECTORS}, timeout=30).json()
    return given, straight


def test_documents_come_in_the_engines_own_order(faregate: Town, vectors: Vllm) -> None:
    given, straight = both(faregate, vectors, "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS, "top_n": 2})
    assert given.status_code == 200, given.text
    results = given.json()["results"]
    assert [result["index"] for result in results] == [result["index"] for result in straight["results"]]
    assert results[0]["index"] == 1
    assert len(results) == 2
    for mine, theirs in zip(results, straight["results"], strict=True):
        assert mine["relevance_score"] == pytest.approx(theirs["relevance_score"], abs=1e-5)
    assert given.headers["x-faregate-fare"] == "1"


def test_scores_are_the_engines_own(faregate: Town, vectors: Vllm) -> None:
    given, straight = both(faregate, vectors, "/v1/score", {"text_1": QUERY, "text_2": DOCUMENTS})
    assert given.status_code == 200, given.text
    mine, theirs = ([one["score"] for one in answer["data"]] for answer in (given.json(), straight))
    assert mine == pytest.approx(theirs, abs=1e-5)
    assert max(mine) == mine[1]
    assert given.json()["usage"]["prompt_tokens"] > 0
