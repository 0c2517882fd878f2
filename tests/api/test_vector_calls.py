"""What can't be embedded, ranked or scored is said precisely, before anything is held."""

from typing import Any

import pytest

from gateway.api.call import read_call
from gateway.api.embeddings import EMBEDDINGS
from gateway.api.endpoint import Endpoint
from gateway.api.rerank import RERANK
from gateway.api.score import SCORE
from gateway.errors import Refusal

IMAGE = {"content": [{"type": "image_url", "image_url": {"url": "http://10.0.0.1/"}}]}
GOOD: dict[str, dict[str, Any]] = {
    "embeddings": {"input": "x"},
    "rerank": {"query": "x", "documents": ["y"]},
    "score": {"text_1": "x", "text_2": "y"},
}


@pytest.mark.parametrize(
    ("endpoint", "fields", "param", "code"),
    [
        (EMBEDDINGS, {"input": None}, "input", "invalid_value"),
        (EMBEDDINGS, {"input": []}, "input", "invalid_value"),
        (EMBEDDINGS, {"input": ["a", 1]}, "input", "invalid_value"),
        (EMBEDDINGS, {"input": {"text": "a"}}, "input", "invalid_value"),
        (EMBEDDINGS, {"input": ["x"] * 2049}, "input", "too_many_items"),
        (EMBEDDINGS, {"input": [1, 2]}, "input", "token_ids_not_supported"),
        (EMBEDDINGS, {"input": [[1], [2]]}, "input", "token_ids_not_supported"),
        (EMBEDDINGS, {"encoding_format": "hex"}, "encoding_format", "invalid_value"),
        (EMBEDDINGS, {"stream": True}, "stream", "invalid_value"),
        # An engine would read these instead of the input, and connect to what they name.
        (EMBEDDINGS, {"messages": [{"role": "user", **IMAGE}]}, "messages", "invalid_value"),
        (RERANK, {"query": None}, "query", "invalid_value"),
        (RERANK, {"query": ""}, "query", "invalid_value"),
        (RERANK, {"query": IMAGE}, "query", "invalid_value"),
        (RERANK, {"documents": []}, "documents", "invalid_value"),
        (RERANK, {"documents": "x"}, "documents", "invalid_value"),
        (RERANK, {"documents": ["x", 5]}, "documents[1]", "invalid_value"),
        (RERANK, {"documents": [IMAGE]}, "documents[0]", "invalid_value"),
        (RERANK, {"documents": IMAGE}, "documents", "invalid_value"),
        (RERANK, {"documents": ["x"] * 2049}, "documents", "too_many_items"),
        (RERANK, {"top_n": 0}, "top_n", "invalid_value"),
        (RERANK, {"top_n": True}, "top_n", "invalid_value"),
        (RERANK, {"return_documents": "yes"}, "return_documents", "invalid_value"),
        (RERANK, {"stream": True}, "stream", "invalid_value"),
        (SCORE, {"text_1": None}, "text_1", "invalid_value"),
        (SCORE, {"text_2": [5]}, "text_2", "invalid_value"),
        (SCORE, {"text_1": ["a", "b"], "text_2": ["c", "d", "e"]}, "text_1", "invalid_value"),
        (SCORE, {"text_2": IMAGE}, "text_2", "invalid_value"),
        # A second pair would be scored and not priced.
        (SCORE, {"queries": "c", "documents": ["d"] * 5000}, "queries", "invalid_value"),
        (SCORE, {"data_1": "c"}, "data_1", "invalid_value"),
        (SCORE, {"text_2": ["x"] * 2049}, "text_2", "too_many_items"),
    ],
)
def test_what_is_wrong_is_named(endpoint: Endpoint, fields: dict[str, Any], param: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_call(endpoint, {"model": "m", **GOOD[endpoint.name], **fields}, 0)
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


@pytest.mark.parametrize(
    ("endpoint", "fields", "items"),
    [
        (EMBEDDINGS, {"input": "one"}, 1),
        (EMBEDDINGS, {"input": ["a", "b", "c"]}, 3),
        (EMBEDDINGS, {"n": 7, "best_of": 9, "encoding_format": None}, 1),
        (RERANK, {"documents": ["a", {"text": "b", "id": 5}], "top_n": None, "return_documents": None}, 2),
        (SCORE, {"text_1": "a", "text_2": ["b", "c"]}, 2),
        (SCORE, {"text_1": ["a", "d"], "text_2": ["b", "c"]}, 2),
    ],
)
def test_items_are_counted_and_nothing_multiplies_them(endpoint: Endpoint, fields: dict[str, Any], items: int) -> None:
    call = read_call(endpoint, {"model": "m", **GOOD[endpoint.name], **fields}, 0)
    assert (call.items, call.generations, call.images) == (items, 1, 0)
