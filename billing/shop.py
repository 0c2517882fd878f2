"""The shop: Stripe, our record, and the time. Nothing is asked of the one inside a transaction of the other."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine

from billing.stripe import Stripe


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Shop:
    """`return_url` is where hosted pages send a browser back to."""

    stripe: Stripe
    engine: Engine
    return_url: str
    now: Callable[[], datetime] = _now
