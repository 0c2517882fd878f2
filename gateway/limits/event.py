"""The usage event of a call of which no more is known than its hold."""

import orjson

from gateway.limits.hold import Ask


def bare_event(ask: Ask, status: int, gateway: str) -> bytes:
    """A call that this gateway held, or may have held, and that ended before it could tell more."""
    return _event(ask.request_id, [ask.account, ask.key, ask.day, ask.fare, ask.model, ask.endpoint, ask.stream, ask.at_ms],
                  status=status, gateway=gateway)  # fmt: skip


def expired_event(request_id: str, packed: bytes, gateway: str) -> bytes:
    """A call whose gateway died; 503 is what its client most likely saw, if anything."""
    return _event(request_id, orjson.loads(packed), status=503, gateway=gateway)


def _event(request_id: str, hold: list[str | int], *, status: int, gateway: str) -> bytes:
    account, key, day, fare, model, endpoint, stream, at_ms = hold[:8]
    return orjson.dumps(
        {
            "id": request_id, "account": account, "key": key, "model": model, "endpoint": endpoint, "fare": fare, "day": day,
            "stream": bool(stream), "status": status, "at_ms": at_ms, "queue_ms": None, "first_byte_ms": None, "total_ms": None,
            "prompt_tokens": None, "cached_tokens": None, "completion_tokens": None, "tokens_estimated": False, "replica": None,
            "gateway": gateway,
        }
    )  # fmt: skip
