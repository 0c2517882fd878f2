"""Usage events as a gateway writes them, for tests to bend."""

from typing import Any

import orjson
import uuid_utils

from billing.days import DAY_MS

ACCOUNT = "0198c0de-0000-7000-8000-000000000001"
KEY = "0198c0de-0000-7000-8000-0000000000aa"


def request_id(at_ms: int) -> str:
    return str(uuid_utils.uuid7(nanoseconds=at_ms * 1_000_000))


def event(at_ms: int, **changed: Any) -> dict[str, Any]:
    made = {
        "id": request_id(at_ms),
        "account": ACCOUNT,
        "key": KEY,
        "model": "m",
        "endpoint": "chat.completions",
        "fare": 1,
        "day": at_ms // DAY_MS,
        "stream": False,
        "status": 200,
        "at_ms": at_ms,
        "queue_ms": 0,
        "first_byte_ms": 12,
        "total_ms": 40,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 3,
        "tokens_estimated": False,
        "replica": "r1",
        "gateway": "g1",
    }
    return {**made, **changed}


def fields(usage: dict[str, Any], verdict: str = "posted", reason: str = "answered") -> dict[Any, Any]:
    """The entry that settle appends for this event."""
    return {b"id": usage["id"].encode(), b"v": verdict.encode(), b"r": reason.encode(), b"e": orjson.dumps(usage)}
