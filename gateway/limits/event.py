"""The usage event of a call of which no more is known than its hold."""

import orjson

from gateway.limits.hold import PLAIN_HOLD, Ask


def bare_event(ask: Ask, status: int, gateway: str) -> bytes:
    """A call that this gateway held, or may have held, and that ended before it could tell more."""
    hold: list[str | int] = [ask.account, ask.key, ask.day, ask.fare, ask.model, ask.endpoint, ask.stream, ask.at_ms]
    return _event(ask.request_id, hold, status=status, gateway=gateway, from_pack=ask.from_pack)


def expired_event(request_id: str, packed: bytes, gateway: str) -> bytes:
    """A call whose gateway died; 503 is what its client most likely saw, if anything."""
    hold = orjson.loads(packed)
    return _event(request_id, hold, status=503, gateway=gateway, from_pack=len(hold) > PLAIN_HOLD)


def _event(request_id: str, hold: list[str | int], *, status: int, gateway: str, from_pack: bool) -> bytes:
    account, key, day, fare, model, endpoint, stream, at_ms = hold[:8]
    return orjson.dumps(
        {
            "id": request_id, "account": account, "key": key, "model": model, "endpoint": endpoint, "fare": fare, "day": day,
            "stream": bool(stream), "status": status, "at_ms": at_ms, "queue_ms": None, "first_byte_ms": None, "total_ms": None,
            "prompt_tokens": None, "cached_tokens": None, "completion_tokens": None, "tokens_estimated": False, "replica": None,
            "gateway": gateway, **({"from_pack": True} if from_pack else {}),
        }
    )  # fmt: skip
