"""The table of the paid endpoints."""

from gateway.api.chat import CHAT, COMPLETIONS
from gateway.api.messages import COUNT_TOKENS, MESSAGES

ENDPOINTS = (CHAT, COMPLETIONS, MESSAGES, COUNT_TOKENS)
PAID = {path: endpoint for endpoint in ENDPOINTS for path in (endpoint.path, *endpoint.also_at)}
