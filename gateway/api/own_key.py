"""`GET /v1/key`: what the key's plan allows, what is used, what remains, and when the day starts anew."""

from typing import Any

from billing.entitlements import FOREVER
from gateway.access.caller import Caller
from gateway.api.receipts import utc
from gateway.wiring import House


async def describe_key(house: House, caller: Caller) -> dict[str, Any]:
    """Raises: GateClosed when the count can't be had."""
    used, key_used, open_calls, packs = await house.gate.usage(caller.account_id, caller.key_id, caller.numbers)
    plan, envelope = caller.plan, caller.plan.envelope
    quota = plan.quota_per_day
    return {
        "object": "key",
        "id": caller.key_id,
        "account": caller.account_name,
        "plan": {
            "code": plan.code,
            "version": plan.version,
            "name": plan.name,
            "class": plan.service_class,
            "source": caller.source,
            "until": None if caller.until_ms >= FOREVER else utc(caller.until_ms),
        },
        "limits": {
            "requests_per_day": quota,
            "requests_per_minute": envelope.requests_per_minute,
            "concurrency": envelope.concurrency,
            "input_tokens": envelope.input_tokens_max,
            "output_tokens": envelope.output_tokens_max,
            "n": envelope.n_max,
            "images": envelope.images_max,
            "beyond_quota": plan.queue.beyond_quota,
            "pack_requests_per_month": caller.pack_fares_per_month,
            "key_requests_per_day": caller.key_quota_per_day,
            "key_requests_per_minute": caller.key_requests_per_minute,
        },
        "used": used,
        "remaining": None if quota is None else max(0, quota - used),
        "key_used": key_used,
        "packs": None
        if packs is None
        else {
            "left": packs.left,
            "used_this_month": packs.used_this_month,
            "left_this_month": packs.left_this_month,
        },
        "open_calls": open_calls,
        "resets_at": utc(house.clock.midnight_ms()),
        "expires_at": None if caller.expires_at_ms is None else utc(caller.expires_at_ms),
        "allowed_models": None if caller.allowed_models is None else sorted(caller.allowed_models),
    }
