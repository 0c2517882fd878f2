"""Answers in the shape of vLLM 0.32: embeddings, reranked documents and scores, each a pure function of the texts."""

import base64
import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any

from tests.support.engine_answers import CREATED, Job, Surface

DIMENSIONS = 8


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """What the stand-in engine embeds a text as: numbers that a float32 holds exactly."""
    digest = hashlib.shake_128(text.encode()).digest(dimensions)
    return [(byte - 128) / 128 for byte in digest]


def score_of(query: str, document: str) -> float:
    """Between 0 and 1, exact in a float32."""
    return hashlib.sha256(f"{query}\0{document}".encode()).digest()[0] / 256


def _vectors(job: Job) -> bytes:
    payload, script = job.payload, job.script
    texts = _texts(payload["input"])
    in_base64 = (payload.get("encoding_format") == "base64") is not script.other_format
    dimensions = 0 if script.empty else payload.get("dimensions") or DIMENSIONS
    data = []
    for index, text in enumerate(texts[: len(texts) - script.short_by]):
        vector: Any = vector_of(text, dimensions)
        if in_base64:
            vector = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        data.append({"index": index, "object": "embedding", "embedding": vector})
    return _json(
        {"id": f"embd-{job.id}", "object": "list", "created": CREATED, "model": payload["model"], "data": data}, job, texts
    )


def _reranks(job: Job) -> bytes:
    query, documents, script = job.payload["query"], _texts(job.payload["documents"]), job.script
    results = [
        {"index": index, "document": {"text": text, "multi_modal": None}, "relevance_score": score_of(query, text)}
        for index, text in enumerate(documents)
    ]
    if script.unsorted:
        results = [{"index": result["index"], "relevance_score": result["relevance_score"]} for result in results]
    else:
        results.sort(key=lambda result: -float(str(result["relevance_score"])))
        results = results[: job.payload.get("top_n") or len(results)]
    results = results[: len(results) - script.short_by]
    return _json({"id": f"rerank-{job.id}", "model": job.payload["model"], "results": results}, job, [query, *documents])


def _scores(job: Job) -> bytes:
    ones, others, script = _texts(job.payload["text_1"]), _texts(job.payload["text_2"]), job.script
    pairs = list(zip(ones if len(ones) > 1 else ones * len(others), others, strict=True))
    data = [
        {"index": index, "object": "score", "score": score_of(one, other)}
        for index, (one, other) in enumerate(pairs[: len(pairs) - script.short_by])
    ]
    answer = {"id": f"score-{job.id}", "object": "list", "created": CREATED, "model": job.payload["model"], "data": data}
    return _json(answer, job, ones + others)


def _texts(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else given


def _json(answer: dict[str, Any], job: Job, texts: list[str]) -> bytes:
    tokens = job.script.prompt_tokens
    if tokens is None:
        tokens = sum(max(1, len(text) // 4) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, "prompt_tokens_details": None}
    return json.dumps({**answer, "usage": None if job.script.no_usage else usage}, separators=(",", ":")).encode()


def _never(job: Job) -> Iterator[tuple[bytes, bool]]:
    raise AssertionError(f"the gateway asked for a stream of {job.id}")


VECTORS, RERANKS, SCORES = Surface(_vectors, _never), Surface(_reranks, _never), Surface(_scores, _never)
