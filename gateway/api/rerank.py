"""`/v1/rerank` and `/v2/rerank`: documents ranked by a query, in the shape that Jina and Cohere share."""

from typing import Any

import orjson

from backends.fleet import Replica
from gateway.api.chunks import parse_answer
from gateway.api.dialect import Question, Whole
from gateway.api.endpoint import Asked, Body, Endpoint
from gateway.api.sse import StreamBroke
from gateway.api.whole_only import WholeOnly, check_count, is_number, listed, tokens_of
from gateway.errors import wrong


def _ranking(body: Body) -> Asked:
    if not isinstance(body.get("query"), str) or not body["query"]:
        raise wrong("query", "a string")
    documents = body.get("documents")
    if not isinstance(documents, list) or not documents:
        raise wrong("documents", "a list of at least one document")
    for index, document in enumerate(documents):
        if _text(document) is None:
            raise wrong(f"documents[{index}]", "a string, or an object with a string as its text")
    check_count("documents", len(documents))
    top = body.get("top_n")
    if top is not None and (type(top) is not int or top < 1):
        raise wrong("top_n", "a whole number of at least 1")
    if not isinstance(body.get("return_documents"), bool | None):
        raise wrong("return_documents", "true or false")
    return Asked(prompts=1, items=len(documents))


def _text(document: object) -> str | None:
    text = document.get("text") if isinstance(document, dict) else document
    return text if isinstance(text, str) else None


def _as_texts(body: Body, replica: Replica, stream: bool) -> None:
    """Engines take documents as strings only, and no null for `top_n`."""
    body["documents"] = [_text(document) for document in body["documents"]]
    if body.get("top_n") is None:
        body.pop("top_n", None)


class Ranking(WholeOnly):
    """`top_n` and `return_documents` are kept to, also where an engine does not know them."""

    def whole(self, body: bytes, question: Question) -> Whole:
        asked, parsed = question.body, parse_answer(body)
        documents = asked["documents"]
        top = min(asked.get("top_n") or len(documents), len(documents))
        results = listed(parsed, "results", top)
        _check(results, len(documents))
        wanted = _with_documents(sorted(results, key=lambda result: -result["relevance_score"])[:top], asked)
        usage = tokens_of(parsed.get("usage"))
        if wanted == results:
            return Whole(usage, is_empty=False)
        return Whole(usage, is_empty=False, body=orjson.dumps({**parsed, "results": wanted}))


def _check(results: list[dict[str, Any]], documents: int) -> None:
    """Raises: StreamBroke."""
    places = {result.get("index") for result in results if type(result.get("index")) is int and 0 <= result["index"] < documents}
    if len(places) != len(results) or not all(is_number(result.get("relevance_score")) for result in results):
        raise StreamBroke("the engine sent results that rank no document, or one twice")


def _with_documents(results: list[dict[str, Any]], asked: Any) -> list[dict[str, Any]]:
    """Where nothing is said of them, as the engine answers."""
    wanted = asked.get("return_documents")
    if wanted is None:
        return results
    if not wanted:
        return [{key: value for key, value in result.items() if key != "document"} for result in results]
    return [{"document": {"text": _text(asked["documents"][result["index"]])}, **result} for result in results]


RERANK = Endpoint(
    path="/v1/rerank",
    also_at=("/v2/rerank",),
    name="rerank",
    dialect=Ranking(),
    ask=_ranking,
    edit=_as_texts,
    input_field="documents",
    kinds=frozenset({"rerank"}),
    streams=False,
)
