"""`/v1/score` through the whole gateway."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.engine_vectors import score_of
from tests.support.gateway import Customer, Town
from tests.vectors.conftest import EMBEDDER, RERANKER


def post(town: Town, customer: Customer, **body: Any) -> httpx2.Response:
    asked = {"model": RERANKER, **body}
    return httpx2.post(f"{town.gateway().url}/v1/score", json=asked, headers=customer.headers, timeout=20)


@pytest.mark.parametrize("model", [RERANKER, EMBEDDER])
@pytest.mark.parametrize(
    ("ones", "others", "pairs"),
    [
        ("a", "b", [("a", "b")]),
        ("a", ["b", "c"], [("a", "b"), ("a", "c")]),
        (["a", "d"], ["b", "c"], [("a", "b"), ("d", "c")]),
    ],
)
def test_each_pair_has_a_score(served: Town, model: str, ones: Any, others: Any, pairs: list[tuple[str, str]]) -> None:
    answer = post(served, served.key("free"), model=model, text_1=ones, text_2=others)
    assert [item["score"] for item in answer.json()["data"]] == [score_of(one, other) for one, other in pairs]


def test_the_fare_covers_a_batch_of_pairs(served: Town) -> None:
    assert post(served, served.key(), text_1="a", text_2=["b"] * 201).headers["x-faregate-fare"] == "3"


def test_scores_that_are_missing_are_no_answer(served: Town) -> None:
    script = "@engine " + json.dumps({"short_by": 1})
    assert post(served, served.key(), text_1=script, text_2=["b", "c"]).status_code == 502
