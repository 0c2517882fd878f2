"""What the reference says of each paid endpoint, by its name in the table of endpoints."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Words(NamedTuple):
    """`request`, `answer` and `event` are names of schemas; None: it does not stream. `last` ends a stream, if no event does."""

    summary: str
    said: str
    request: str
    answer: str
    event: str | None = None
    last: str | None = None
    is_anthropic: bool = False


WORDS: Mapping[str, Words] = MappingProxyType(
    {
        "chat": Words(
            "Chat",
            "Answers a conversation, in OpenAI's shape. Fare: the model's, times `n`.",
            request="ChatRequest", answer="ChatAnswer", event="ChatChunk", last="[DONE]",
        ),
        "completions": Words(
            "Complete a text",
            "Goes on from a prompt, in OpenAI's older shape. Fare: the model's, times `n` (or `best_of`), times the prompts.",
            request="CompletionRequest", answer="CompletionAnswer", event="CompletionAnswer", last="[DONE]",
        ),
        "responses": Words(
            "Respond",
            "OpenAI's newer shape of a conversation, without a memory: send all of it. Fare: the model's.",
            request="ResponseRequest", answer="Response", event="ResponseEvent",
        ),
        "embeddings": Words(
            "Embed texts",
            "One vector for each text. Fare: the model's, for each `items_per_fare` texts begun.",
            request="EmbeddingsRequest", answer="EmbeddingsAnswer",
        ),
        "rerank": Words(
            "Rank documents",
            "Which documents answer a query best. Fare: the model's, for each `items_per_fare` documents begun.",
            request="RerankRequest", answer="RerankAnswer",
        ),
        "score": Words(
            "Score pairs of texts",
            "How well texts belong together. Fare: the model's, for each `items_per_fare` pairs begun.",
            request="ScoreRequest", answer="ScoreAnswer",
        ),
        "messages": Words(
            "Chat, in Anthropic's shape",
            "For Anthropic's clients: their events, errors and headers; the key as `x-api-key` too. Fare: the model's.",
            request="MessagesRequest", answer="MessagesAnswer", event="MessagesEvent", is_anthropic=True,
        ),
        "count_tokens": Words(
            "Count tokens, in Anthropic's shape",
            "How many tokens a prompt has. Fare: none; the plan's rate holds.",
            request="TokenCountRequest", answer="TokenCount", is_anthropic=True,
        ),
    }
)  # fmt: skip
