"""Where Stripe's events arrive: proved, stored and answered; the worker applies them. Without a secret there is no such page."""

from fastapi import FastAPI, Request

from billing.arrivals import STORE, as_row
from billing.stripe_objects import is_live_key, time
from billing.webhooks import TYPES, EventForeign, EventUnreadable, SignatureWrong, read_event, verify
from gateway.errors import Refusal
from gateway.wiring import House

STRIPE_PATH = "/webhooks/stripe"
# Stripe's events are a few KB; the longest invoices some hundred.
BODY_MAX = 1024 * 1024


def serve_hooks(app: FastAPI, house: House) -> None:
    secrets, key = house.settings.webhook_secrets, house.settings.stripe_key
    if not secrets or key is None:
        return
    is_live = is_live_key(key.get_secret_value())

    @app.post(STRIPE_PATH)
    async def stripe(request: Request) -> dict[str, bool]:
        """200 once it is stored; whatever else makes Stripe send it again, for three days."""
        body = await _bounded(request)
        now_seconds = house.clock.now_ms() // 1000
        try:
            verify(body, request.headers.get("stripe-signature"), secrets, now_seconds)
            event = read_event(body, is_live=is_live)
        except (SignatureWrong, EventUnreadable, EventForeign) as refused:
            house.log.warning("webhook_refused", kind=type(refused).__name__, why=str(refused))
            raise
        if event.type in TYPES:
            await house.record.ask(STORE, as_row(event, time(now_seconds)))
        return {"received": True}


async def _bounded(request: Request) -> bytes:
    """No more of a body is read than an event can have. Raises: Refusal."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > BODY_MAX:
            raise Refusal(413, f"An event of Stripe's has at most {BODY_MAX:,} bytes.", code="request_too_large")
    return bytes(found)
