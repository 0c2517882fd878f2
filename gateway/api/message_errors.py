"""Anthropic's error envelope, its types by status, and the headers of its API."""

import orjson

from gateway.api.dialect import JSON, Headers
from gateway.errors import Refusal

# Anthropic's own status for "not enough room": its clients wait and come back, some of them with another model.
OVERLOADED = 529
_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


class AnthropicErrors:
    """The same on all endpoints below `/v1/messages`."""

    def refused(self, refusal: Refusal, request_id: bytes) -> tuple[int, Headers, bytes]:
        status = _status(refusal)
        return status, [JSON, *refusal.headers()], error_body(refusal, request_id)

    def identity(self, request_id: bytes) -> Headers:
        return [(b"request-id", request_id), (b"x-request-id", request_id)]

    def account(self, account: bytes) -> Headers:
        return [(b"anthropic-organization-id", account)]

    def took(self, milliseconds: int) -> Headers:
        return ()

    def rate_limit(self, limit: bytes, remaining: bytes, reset: bytes) -> Headers:
        return [
            (b"anthropic-ratelimit-requests-limit", limit),
            (b"anthropic-ratelimit-requests-remaining", remaining),
            (b"anthropic-ratelimit-requests-reset", reset),
        ]


def error_body(refusal: Refusal, request_id: bytes | None = None) -> bytes:
    """Our code stands where Anthropic has its own: `details.error_code`."""
    status = _status(refusal)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    error: dict[str, object] = {"type": kind, "message": refusal.message}
    if refusal.code is not None:
        error["details"] = {"error_code": refusal.code}
    body: dict[str, object] = {"type": "error", "error": error}
    if request_id is not None:
        body["request_id"] = request_id.decode("ascii")
    return orjson.dumps(body)


def _status(refusal: Refusal) -> int:
    return OVERLOADED if refusal.code == "server_is_overloaded" else refusal.status
