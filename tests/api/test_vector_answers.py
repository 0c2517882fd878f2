"""Engines' answers with vectors, ranks and scores: bytes as they came where they are as asked, converted or refused where not."""

import base64
import struct
from typing import Any

import orjson
import pytest

from backends.engines.vllm import VLLM
from gateway.api.dialect import Question, Whole
from gateway.api.embeddings import EMBEDDINGS
from gateway.api.endpoint import Endpoint
from gateway.api.rerank import RERANK
from gateway.api.score import SCORE
from gateway.api.sse import StreamBroke
from tests.recordings.recording import recorded

NUMBERS = [0.5, -0.25, 1.0]
PACKED = base64.b64encode(struct.pack("<3f", *NUMBERS)).decode()
USAGE = {"prompt_tokens": 7, "total_tokens": 7}


RECORDED = {"/v1/embeddings": EMBEDDINGS, "/v1/rerank": RERANK, "/v2/rerank": RERANK, "/v1/score": SCORE}


def read(endpoint: Endpoint, body: Any, **asked: Any) -> Whole:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return endpoint.dialect.whole(raw, Question(asked, False, VLLM))


def vectors(*found: Any, **more: Any) -> dict[str, Any]:
    data = [{"index": index, "object": "embedding", "embedding": vector} for index, vector in enumerate(found)]
    return {"object": "list", "data": data, "usage": USAGE, **more}


@pytest.mark.parametrize(("vector", "encoding_format"), [(NUMBERS, "float"), (NUMBERS, None), (PACKED, "base64")])
def test_vectors_as_asked_are_not_touched(vector: Any, encoding_format: str | None) -> None:
    told = read(EMBEDDINGS, vectors(vector, vector), input=["a", "b"], encoding_format=encoding_format)
    assert (told.body, told.is_empty, told.usage.prompt_tokens) == (None, False, 7)


def test_usage_is_found_before_the_data_too() -> None:
    """As llama.cpp writes it, whose keys are in order of the alphabet or of its own."""
    body = {"model": "m", "usage": USAGE, "data": vectors(NUMBERS)["data"]}
    assert read(EMBEDDINGS, body, input="a").usage.prompt_tokens == 7


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": -1}, {"prompt_tokens": "7"}, {"x": "y" * 5000}])
def test_usage_that_is_none_is_not_counted(usage: Any) -> None:
    assert read(EMBEDDINGS, vectors(NUMBERS, usage=usage), input="a").usage.prompt_tokens is None


@pytest.mark.parametrize(("sent", "asked", "expected"), [(NUMBERS, "base64", PACKED), (PACKED, "float", NUMBERS)])
def test_vectors_in_the_other_format_are_converted_and_the_rest_stays(sent: Any, asked: str, expected: Any) -> None:
    told = read(EMBEDDINGS, vectors(sent, sent, id="x"), input=["a", "b"], encoding_format=asked)
    assert told.body is not None
    assert orjson.loads(told.body) == vectors(expected, expected, id="x")
    assert told.usage.prompt_tokens == 7


def test_json_with_spaces_is_read_as_well() -> None:
    told = read(EMBEDDINGS, b'{ "data" : [ { "embedding" : [ 0.5, 1 ] } ] }', input="a")
    assert told.body == b'{"data":[{"embedding":[0.5,1]}]}'


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        {"data": []},
        {"data": None},
        {"data": ["x"]},
        {"data": [{}]},
        vectors([]),
        vectors(""),
        vectors(None),
        vectors([0.5, None]),
        vectors([None]),
        {"error": {"message": "no"}},
    ],
)
def test_what_holds_no_vector_is_no_answer(body: Any, encoding_format: str) -> None:
    with pytest.raises(StreamBroke):
        read(EMBEDDINGS, body, input="a", encoding_format=encoding_format)


def results(*found: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in found], "usage": {"total_tokens": 5}}


def test_a_ranking_in_order_is_not_touched() -> None:
    told = read(RERANK, results((1, 0.9), (0, 0.9), (2, -3)), query="q", documents=["a", "b", "c"])
    assert (told.body, told.usage.prompt_tokens) == (None, 5)


def test_a_ranking_out_of_order_is_sorted_and_cut() -> None:
    told = read(RERANK, results((0, 0.1), (1, 0.9), (2, 0.5)), query="q", documents=["a", "b", "c"], top_n=2)
    assert told.body is not None
    assert orjson.loads(told.body) == results((1, 0.9), (2, 0.5))


@pytest.mark.parametrize(
    "body", [{}, results(), results((0, 0.5)), results((0, 1), (0, 1)), results((0, 1), (2, 1)), results((0, 1), (1, None))]
)
def test_a_ranking_of_other_documents_is_no_answer(body: Any) -> None:
    with pytest.raises(StreamBroke):
        read(RERANK, body, query="q", documents=["a", "b"])


def test_scores_are_not_touched() -> None:
    body = {"data": [{"index": 0, "score": 0.5}, {"index": 1, "score": -1}], "usage": USAGE}
    told = read(SCORE, body, text_1="a", text_2=["b", "c"])
    assert (told.body, told.usage.prompt_tokens) == (None, 7)


@pytest.mark.parametrize("body", [{}, {"data": []}, {"data": [{"score": 1}]}, {"data": [{"score": 1}, {"score": None}]}])
def test_scores_that_are_missing_are_no_answer(body: Any) -> None:
    with pytest.raises(StreamBroke):
        read(SCORE, body, text_1="a", text_2=["b", "c"])


def test_a_vector_that_claims_to_be_base64_and_is_not_is_not_converted() -> None:
    with pytest.raises(StreamBroke):
        read(EMBEDDINGS, vectors("no base64!"), input="a", encoding_format="float")


@pytest.mark.parametrize(
    "case",
    ["embeddings-base64", "embeddings-float", "embeddings-many", "embeddings-plain", "rerank-plain", "rerank-v2", "score-pairs",
     "score-plain"],
)  # fmt: skip
def test_what_vllm_answers_passes_as_it_is_and_is_counted(case: str) -> None:
    recording = recorded("vllm", case)
    told = read(RECORDED[recording.call.path], recording.answer.body, **recording.call.body)
    assert told.body is None
    assert told.usage.prompt_tokens == recording.answer.json()["usage"]["prompt_tokens"]


def test_vllm_returns_documents_that_were_not_asked_for() -> None:
    recording = recorded("vllm", "rerank-top")
    assert "document" in recording.answer.json()["results"][0]
    told = read(RERANK, recording.answer.body, **recording.call.body)
    assert told.body is not None
    [result] = orjson.loads(told.body)["results"]
    assert result == {"index": 0, "relevance_score": 0.8560696840286255}
