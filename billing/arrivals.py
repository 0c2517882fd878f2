"""An event of Stripe's as it is stored when it arrives; for psycopg, as a gateway has nothing else at hand."""

from datetime import datetime
from typing import Any

import orjson

from billing.stripe_objects import Event

# Twice is once: by whichever way, and however often, an event comes.
STORE = """
WITH added AS (
    INSERT INTO stripe_events (id, type, created, api_version, object_id, payload, received_at, next_try_at)
    VALUES (%(id)s, %(type)s, %(created)s, %(api_version)s, %(object_id)s, %(payload)s::jsonb, %(at)s, %(at)s)
    ON CONFLICT (id) DO NOTHING RETURNING id
)
SELECT count(*) AS added FROM added
"""


def as_row(event: Event, now: datetime) -> dict[str, Any]:
    """The values of `STORE`."""
    return {
        "id": event.id,
        "type": event.type,
        "created": event.created,
        "api_version": event.api_version,
        "object_id": event.links.get("id"),
        "payload": orjson.dumps(dict(event.links)).decode(),
        "at": now,
    }
