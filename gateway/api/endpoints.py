"""The table of the paid endpoints."""

from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.embeddings import EMBEDDINGS
from gateway.api.messages import COUNT_TOKENS, MESSAGES
from gateway.api.rerank import RERANK
from gateway.api.responses import RESPONSES
from gateway.api.score import SCORE

ENDPOINTS = (CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, RERANK, SCORE, MESSAGES, COUNT_TOKENS)
PAID = {path: endpoint for endpoint in ENDPOINTS for path in (endpoint.path, *endpoint.also_at)}
