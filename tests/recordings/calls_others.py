"""Recorded calls of embeddings, score and rerank, of the pages that cost nothing, and of what a chat engine has no answer for."""

from types import MappingProxyType
from typing import Any

from tests.recordings.recording import Call
from tests.recordings.words import MODEL, TOO_LONG, VECTORS, says

QUERY = "What is the capital of France?"
DOCUMENTS = ["Paris is the capital of France.", "Bread is baked.", "Berlin lies in Germany."]


def embed(input: Any = "Hello", **more: Any) -> Call:  # noqa: A002 - the field's name
    return Call("/v1/embeddings", {"model": VECTORS, "input": input, **more})


def rerank(path: str, **more: Any) -> Call:
    return Call(path, {"model": VECTORS, "query": QUERY, "documents": DOCUMENTS, **more})


def score(path: str, **more: Any) -> Call:
    return Call(path, {"model": VECTORS, "text_1": QUERY, "text_2": DOCUMENTS, **more})


CALLS = MappingProxyType(
    {
        "embeddings-float": embed(encoding_format="float"),
        "embeddings-plain": embed(),
        "embeddings-base64": embed(encoding_format="base64"),
        "embeddings-many": embed(["Hello", "Bread"], encoding_format="base64"),
        "embeddings-token-ids": embed([101, 7592, 102], encoding_format="base64"),
        "embeddings-many-token-ids": embed([[101, 7592, 102], [101, 102]], encoding_format="base64"),
        "embeddings-dimensions": embed(dimensions=64),
        "embeddings-wrong-format": embed(encoding_format="no-such"),
        "embeddings-wrong-empty": embed([]),
        "embeddings-wrong-no-input": Call("/v1/embeddings", {"model": VECTORS}),
        "embeddings-wrong-model": embed(model="no-such-model"),
        "embeddings-too-long": embed(TOO_LONG),
        "embeddings-chat": Call("/v1/chat/completions", {"model": VECTORS, "messages": [says()]}),
        "embeddings-models": Call("/v1/models", method="GET"),
        "rerank-bare": rerank("/rerank"),
        "rerank-plain": rerank("/v1/rerank"),
        "rerank-v2": rerank("/v2/rerank"),
        "rerank-top": rerank("/v1/rerank", top_n=1, return_documents=False),
        "rerank-objects": rerank("/v1/rerank", documents=[{"text": text} for text in DOCUMENTS]),
        "rerank-wrong-no-query": Call("/v1/rerank", {"model": VECTORS, "documents": DOCUMENTS}),
        "rerank-wrong-empty": rerank("/v1/rerank", documents=[]),
        "rerank-wrong-model": rerank("/v1/rerank", model="no-such-model"),
        "rerank-too-long": rerank("/v1/rerank", documents=[TOO_LONG]),
        "score-bare": score("/score"),
        "score-plain": score("/v1/score"),
        "score-pairs": score("/v1/score", text_1=[QUERY, QUERY, QUERY]),
        "score-queries": Call("/v1/score", {"model": VECTORS, "queries": QUERY, "documents": DOCUMENTS}),
        "score-wrong": Call("/v1/score", {"model": VECTORS, "text_1": QUERY}),
        "score-wrong-lengths": score("/v1/score", text_1=[QUERY, QUERY]),
        "score-wrong-model": score("/v1/score", model="no-such-model"),
        "free-models": Call("/v1/models", method="GET"),
        "free-model": Call(f"/v1/models/{MODEL}", method="GET"),
        "free-health": Call("/health", method="GET"),
        "free-version": Call("/version", method="GET"),
        "free-no-such-path": Call("/v1/no-such", {}),
        "free-wrong-method": Call("/v1/chat/completions", method="GET"),
        "chat-engine-embeddings": embed(model=MODEL),
        "chat-engine-rerank": rerank("/v1/rerank", model=MODEL),
        "chat-engine-score": score("/v1/score", model=MODEL),
    }
)
