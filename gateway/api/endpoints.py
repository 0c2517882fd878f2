"""The table of the paid endpoints."""

from gateway.api.chat import CHAT, COMPLETIONS

PAID = {endpoint.path: endpoint for endpoint in (CHAT, COMPLETIONS)}
