"""The headers that a caller may send, and those that answers carry."""

from gateway.reference.shapes import Schema

# Of requests to the paid endpoints.
ASKED = {
    "Idempotency-Key": "A name of yours for this call: sent again within the hour, it gets the same answer, at no second fare.",
    "X-Faregate-Max-Wait-Ms": "The longest wait for a GPU, in ms; past it the call is refused with 503, unbilled.",
}
# Of answers, whatever came of the call.
ALWAYS = {"x-request-id": "Our id of the call, a UUIDv7; the ledger's row has it too."}
ANTHROPIC_ALWAYS = {"request-id": "The same, under Anthropic's name."}
# Of calls whose fare was held, also where it is given back.
RECEIPT = {
    "x-faregate-fare": "What the call costs, in fare units, if it is billed.",
    "x-faregate-remaining": "Fare units left of today, this call's taken off; or `unlimited`.",
    "x-faregate-reset": "When the day starts anew, as 2026-12-02T00:00:00Z. Not with an unlimited plan, as all below.",
    "x-ratelimit-limit-requests": "The day's quota (OpenAI's name).",
    "x-ratelimit-remaining-requests": "What is left of it.",
    "x-ratelimit-reset-requests": "How long until it starts anew, as 3h12m0s.",
    "ratelimit-policy": "The same as an IETF draft has it: the quota of the day, and of the minute.",
    "ratelimit": "What is left of the day, and the seconds until it starts anew.",
}
ANTHROPIC_RECEIPT = {
    "anthropic-ratelimit-requests-limit": "The day's quota.",
    "anthropic-ratelimit-requests-remaining": "What is left of it.",
    "anthropic-ratelimit-requests-reset": "When it starts anew.",
}
# Of calls that waited for a GPU, while it can still be said.
QUEUE = {
    "x-faregate-queue-ms": "How long it waited for a GPU.",
    "x-faregate-queue-position": "How many were before it when it came.",
    "x-faregate-queue-estimate-ms": "How long it was expected to wait.",
}
# Of calls beyond the day's quota, with plans that let them wait for what is idle or that go on with packs.
LANE = {
    "x-faregate-lane": (
        "The day's quota is spent. `slow`: the call took what nobody else wanted, at no fare. `pack`: a pack pays."
    ),
    "x-faregate-pack-remaining": "Fare units left of the account's packs, this call's taken off.",
}
# Of an answer that is given again for its Idempotency-Key.
REPLAY = {"x-faregate-replayed": "`true`: the answer of an earlier call with this Idempotency-Key; nothing was billed anew."}
REFUSED = {
    "retry-after": "Seconds, 1 to 60, where coming back is of use.",
    "retry-after-ms": "The same in ms, for OpenAI's clients.",
    "x-should-retry": "`false` where it is of none, for OpenAI's and Anthropic's clients.",
}


# All that answers carry, whoever asks; and what Anthropic's clients find besides.
TOLD = ALWAYS | RECEIPT | QUEUE | LANE | REPLAY | REFUSED
TOLD_ANTHROPIC = ANTHROPIC_ALWAYS | ANTHROPIC_RECEIPT


def described(headers: dict[str, str]) -> Schema:
    return {name: {"description": said, "schema": {"type": "string"}} for name, said in headers.items()}
