"""The bodies of embeddings, rerank and score."""

from gateway.api.whole_only import ITEMS_MAX
from gateway.reference.shapes import Schema, either, flag, list_of, maybe, number, record, text, whole

_TEXTS: Schema = {"type": "string"}
_MODEL = text("A model's id or alias. `GET /v1/models` shows which models serve this, and how many items one fare covers.")
_COUNTED = maybe(record("The engine's own count.", prompt_tokens=whole("Tokens of all texts."), total_tokens=whole("The same.")))


def _one_or_many(said: str) -> Schema:
    return either(said, _TEXTS, list_of(_TEXTS, minItems=1, maxItems=ITEMS_MAX))


SCHEMAS: dict[str, Schema] = {
    "EmbeddingsRequest": record(
        "Texts only: token ids are refused, since those of another tokenizer give wrong vectors without an error.",
        "model input",
        model=_MODEL,
        input=_one_or_many(
            "What is embedded. Each text has the model's whole context; the plan's input limit counts all together."
        ),
        encoding_format=text(
            "Numbers, or base64 of little-endian float32, which is a third of the size.",
            enum=["float", "base64"],
            default="float",
        ),
        dimensions=whole("Shorter vectors, of models that were trained for it; others refuse.", minimum=1),
        user=text("Your name of the end user. Passed on, and not kept."),
    ),
    "EmbeddingsAnswer": record(
        "One vector each, in the order of the input. Never fewer: an engine that leaves one out has failed.",
        "object data model",
        object=text("The kind of this object.", const="list"),
        model=text("The model, by the engine's name of it."),
        data=list_of(
            record(
                "One vector.",
                "index object embedding",
                index=whole("Which input."),
                object=text("", const="embedding"),
                embedding=either("In the format asked for.", list_of({"type": "number"}, minItems=1), text("", minLength=1)),
            )
        ),
        usage=_COUNTED,
    ),
    "RerankRequest": record(
        "The shape that Jina and Cohere share.",
        "model query documents",
        model=_MODEL,
        query=text("What is looked for.", minLength=1),
        documents=list_of(
            either("A text.", _TEXTS, record("Or an object with one.", "text", text=text("The text."))),
            "What is ranked.",
            minItems=1,
            maxItems=ITEMS_MAX,
        ),
        top_n=whole("Only so many of the best.", minimum=1),
        return_documents=flag("Whether the texts come back too; left to the engine where nothing is said."),
    ),
    "RerankAnswer": record(
        "The documents, best first.",
        "results",
        id=text("The engine's id of the answer."),
        model=text("The model, by the engine's name of it."),
        results=list_of(
            record(
                "One document.",
                "index relevance_score",
                index=whole("Which document.", minimum=0),
                relevance_score=number("The higher the better; its scale is the model's."),
                document=record("Its text.", text=maybe(text("The text."))),
            ),
            minItems=1,
        ),
        usage=_COUNTED,
    ),
    "ScoreRequest": record(
        "One `text_1` with each `text_2`, or as many of both.",
        "model text_1 text_2",
        model=_MODEL,
        text_1=_one_or_many("A query, or several."),
        text_2=_one_or_many("What it is compared with."),
    ),
    "ScoreAnswer": record(
        "One score a pair, in their order.",
        "data",
        object=text("The kind of this object."),
        model=text("The model, by the engine's name of it."),
        data=list_of(
            record("One pair.", "index score", index=whole("Which pair."), score=number("The higher, the closer.")), minItems=1
        ),
        usage=_COUNTED,
    ),
}
EXAMPLES = {
    "EmbeddingsRequest": {"model": "all-minilm-l6-v2", "input": ["the sky is blue", "bread is baked"]},
    "EmbeddingsAnswer": {
        "object": "list",
        "model": "all-minilm-l6-v2",
        "data": [
            {"index": 0, "object": "embedding", "embedding": [0.0123, -0.0456]},
            {"index": 1, "object": "embedding", "embedding": [-0.0789, 0.0012]},
        ],
        "usage": {"prompt_tokens": 10, "total_tokens": 10},
    },
    "RerankRequest": {
        "model": "bge-reranker-v2-m3",
        "query": "What is the capital of France?",
        "documents": ["Bread is baked.", "Paris is the capital of France."],
        "top_n": 1,
    },
    "RerankAnswer": {
        "id": "rerank-1",
        "model": "bge-reranker-v2-m3",
        "results": [{"index": 1, "relevance_score": 0.98}],
        "usage": {"prompt_tokens": 24, "total_tokens": 24},
    },
    "ScoreRequest": {
        "model": "bge-reranker-v2-m3",
        "text_1": "What is the capital of France?",
        "text_2": ["Bread is baked.", "Paris is the capital of France."],
    },
    "ScoreAnswer": {
        "object": "list",
        "model": "bge-reranker-v2-m3",
        "data": [{"index": 0, "object": "score", "score": 0.02}, {"index": 1, "object": "score", "score": 0.98}],
        "usage": {"prompt_tokens": 24, "total_tokens": 24},
    },
}
