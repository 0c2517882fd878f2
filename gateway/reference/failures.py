"""Every way to be refused: statuses, codes, what each means and what to do; one table, which a test holds against the code."""

from typing import NamedTuple

from gateway.reference.shapes import Schema, anything, maybe, record, text


class Failure(NamedTuple):
    """`code` is what a program branches on; None stands for an engine's own words."""

    status: int
    code: str | None
    said: str


FAILURES = (
    Failure(400, "bad_http", "It is no HTTP/1.1 request."),
    Failure(400, "invalid_value", "A field is missing or wrong; `param` names it, the message says what it must be."),
    Failure(400, "invalid_json", "The body is no JSON object."),
    Failure(400, "invalid_utf8", "The body is no UTF-8."),
    Failure(400, "duplicate_key", "A key stands twice in one object."),
    Failure(400, "request_too_complex", "Too many values in one body."),
    Failure(400, "invalid_content_encoding", "The body does not decode as its Content-Encoding says."),
    Failure(400, "context_length_exceeded", "More input than the plan, or the model's context, takes."),
    Failure(400, "over_plan_limit", "More answers or images than the plan allows in one call."),
    Failure(400, "too_many_items", "More than 2,048 inputs, documents or pairs."),
    Failure(400, "unsupported_parameter", "A field that this model's engine can't keep to; the message says what to send."),
    Failure(400, "model_without_vision", "Images for a model that takes none."),
    Failure(400, "token_ids_not_supported", "Token ids where text is embedded."),
    Failure(400, "tool_not_served", "A tool of a kind that nothing here runs."),
    Failure(400, "not_stored", "It refers to something of an earlier call, and nothing is stored."),
    Failure(400, "image_not_fetched", "An image by address could not be fetched, or may not be."),
    Failure(400, "model_not_for_endpoint", "The model is of another kind; the message names some that fit."),
    Failure(400, "fare_out_of_bounds", "One call may cost at most 1,000,000 fare units; split it."),
    Failure(400, "invalid_idempotency_key", "1 to 255 visible characters of ASCII, without spaces."),
    Failure(400, "repeated_request", "The same body failed many times in a row; mend it, or wait two minutes."),
    Failure(400, None, "The engine refused the request; the message has its words."),
    Failure(401, "invalid_api_key", "No key, an unknown, expired or revoked one, or one that is bound to other addresses."),
    Failure(403, "model_not_in_plan", "The plan does not open the model's tier."),
    Failure(403, "model_not_allowed_for_key", "The key has a list of models, and this is none of them."),
    Failure(403, "account_suspended", "The account is suspended."),
    Failure(403, "scope_missing", "The key may not do this."),
    Failure(404, "model_not_found", "No such model, or none that is served; near names are offered."),
    Failure(404, "not_found", "No such path; the message lists those that are served."),
    Failure(404, "not_in_queue", "No call of this key with this id waits for a GPU."),
    Failure(405, "method_not_allowed", "Another method is served there; see Allow."),
    Failure(408, "bad_http", "The request did not arrive in time."),
    Failure(409, "idempotency_key_in_use", "A call with this Idempotency-Key runs; come back."),
    Failure(413, "request_too_large", "The body, as sent or decoded, is over the limit."),
    Failure(413, "compression_ratio_exceeded", "The body decodes to far more than any real one does."),
    Failure(415, "unsupported_content_type", "Send JSON, as `application/json`."),
    Failure(415, "unsupported_content_encoding", "Send it as it is, or as gzip, deflate or zstd."),
    Failure(422, "idempotency_key_reused", "This Idempotency-Key was used with another body."),
    Failure(422, "idempotent_answer_not_kept", "Done and billed under this Idempotency-Key; its answer was too large to keep."),
    Failure(429, "rate_limit_exceeded", "Too many calls this minute; come back after Retry-After."),
    Failure(429, "concurrency_limit_exceeded", "Too many calls at once; wait for one to end."),
    Failure(429, "insufficient_quota", "The day's quota is spent; it starts anew at midnight UTC. Don't retry before."),
    Failure(429, "too_many_unknown_keys", "Many unknown keys came from your address."),
    Failure(431, "bad_http", "The headers are over the limit."),
    Failure(500, "internal_error", "Our fault. Nothing was billed."),
    Failure(502, "engine_failed", "The engine failed before its answer was whole. Nothing was billed."),
    Failure(503, "server_is_overloaded", "All GPUs for this model are busy; come back after Retry-After. Nothing was billed."),
    Failure(503, "service_unavailable", "No healthy engine, or a restart; come back after Retry-After. Nothing was billed."),
    Failure(503, "limits_unavailable", "Limits can't be checked at present, so no call is taken. Nothing was billed."),
    Failure(504, "engine_timeout", "No output in time. Nothing was billed."),
)  # fmt: skip
MEANINGS = {
    400: "Something in the request has to change; a retry is no use.",
    401: "The key.",
    403: "What the key or the plan may not.",
    404: "Not here.",
    405: "Not with this method.",
    408: "Too slow.",
    409: "Not yet.",
    413: "Too large.",
    415: "Not in this form.",
    422: "Not with this Idempotency-Key.",
    429: "A limit of yours: `code` says which, and when it ends.",
    431: "Too large.",
    500: "Our fault; not billed.",
    502: "The engine's fault; not billed.",
    503: "Not now; not billed.",
    504: "Too late; not billed.",
    529: "Anthropic's status for `server_is_overloaded`; not billed.",
}
SCHEMAS: dict[str, Schema] = {
    "Error": record(
        "OpenAI's envelope.",
        "error",
        error=record(
            "What went wrong.",
            "message type param code",
            message=text("For people: what, and what to do about it."),
            type=text("The family of the error."),
            param=maybe(text("Which field.")),
            code=maybe(text("For programs.")),
        ),
    ),
    "AnthropicError": record(
        "Anthropic's envelope, below `/v1/messages` and with `anthropic-version`.",
        "type error",
        type=text("", const="error"),
        error=record(
            "What went wrong.",
            "type message",
            type=text("Anthropic's type for the status."),
            message=text("For people."),
            details=anything("`error_code`, our code."),
        ),
        request_id=text("Also in the header `request-id`."),
    ),
}
EXAMPLES = {
    "Error": {
        "error": {
            "message": "You have used 60 of 60 requests today (the plan's quota). It starts anew in 3 hours 12 minutes, at "
            "2026-12-02T00:00:00Z (midnight UTC).",
            "type": "insufficient_quota",
            "param": None,
            "code": "insufficient_quota",
        }
    },
    "AnthropicError": {
        "type": "error",
        "error": {
            "type": "authentication_error",
            "message": "No API key was sent.",
            "details": {"error_code": "invalid_api_key"},
        },
        "request_id": "019ad8f2-0000-7000-8000-000000000000",
    },
}


def explained(status: int) -> str:
    """What a status means, and its codes."""
    codes = [f"`{failure.code}`: {failure.said}" for failure in FAILURES if failure.status == status and failure.code]
    return " ".join([MEANINGS[status], *codes])
