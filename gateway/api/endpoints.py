"""The table of the paid endpoints."""

from gateway.api.chat import CHAT, COMPLETIONS

ENDPOINTS = (CHAT, COMPLETIONS)
PAID = {path: endpoint for endpoint in ENDPOINTS for path in (endpoint.path, *endpoint.also_at)}
