"""The worker's loops over Stripe: what came is applied, doubles are ended, and once a day what was missed is looked for."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TypeVar

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis
from sqlalchemy.exc import OperationalError

from billing.database import open_engine
from billing.purchases import Swept, apply_due, end_doubles, sweep
from billing.shop import Shop
from billing.stripe import StripeRefused, StripeUnavailable, open_stripe
from gateway.clock import DAY_MS, Clock
from gateway.log import Log
from gateway.settings import Settings

# Between two looks for events: a purchase is in force within a second of the word of it.
EVENTS_LOOK_SECONDS = 0.3
# Between two looks whether a day is over; and after a sweep that Stripe, or the network, cut short.
SWEEP_LOOK_SECONDS = 60.0
# After Stripe would not end or give back a double: a person may have to look.
AGAIN_SECONDS = 60.0
SWEPT_KEY = "faregate:stripe_swept"

Session = psycopg.AsyncConnection[TupleRow]
_Found = TypeVar("_Found")


class StripeEvents:
    """Asks Stripe in threads of their own; nothing waits for one when the worker stops, as any step can be cut off."""

    def __init__(self, settings: Settings, valkey: Redis, clock: Clock, log: Log) -> None:
        self._settings, self._valkey, self._clock, self._log = settings, valkey, clock, log
        self._doubles_at: float | None = 0.0  # when to look for them; None: nothing happened since

    async def apply(self, connection: Session) -> int:
        """What is due; returns how many events were looked at. Raises psycopg's errors."""
        query = "SELECT 1 FROM stripe_events WHERE applied_at IS NULL AND next_try_at <= %s LIMIT 1"
        cursor = await connection.execute(query, (self._now(),))
        if await cursor.fetchone() is None and not self._is_time_for_doubles():
            return 0
        return await apart(self._apply)

    async def sweep(self, connection: Session) -> int:
        """Once a day, and as long as the last one is not known."""
        last = await self._valkey.get(SWEPT_KEY)
        now_ms = self._clock.now_ms()
        if last is not None and now_ms - int(last) < DAY_MS:
            return 0
        since = None if last is None else datetime.fromtimestamp(int(last) / 1000, UTC)
        found = await apart(lambda: self._sweep(since))
        if found is not None:
            await self._valkey.set(SWEPT_KEY, now_ms)
            self._log.info("stripe_swept", events=found.events, subscriptions=found.subscriptions)
            if found.lacking:
                self._log.error("subscriptions_unknown_to_stripe", subscriptions=found.lacking[:20], count=len(found.lacking))
        return 0

    def _apply(self) -> int:
        with self._shop() as shop:
            looked_at = apply_due(shop)
            if looked_at:
                self._doubles_at = 0.0
            elif self._is_time_for_doubles():
                self._doubles_at = None if self._end_doubles(shop) else time.monotonic() + AGAIN_SECONDS
            return looked_at

    def _is_time_for_doubles(self) -> bool:
        return self._doubles_at is not None and self._doubles_at <= time.monotonic()

    def _end_doubles(self, shop: Shop) -> bool:
        """Whether none is left."""
        try:
            ended = end_doubles(shop)
        except (StripeUnavailable, StripeRefused) as trouble:
            self._log.error("doubles_not_ended", kind=type(trouble).__name__, why=str(trouble))
            return False
        if ended:
            self._log.warning("doubles_ended", subscriptions=ended)
        return True

    def _sweep(self, since: datetime | None) -> Swept | None:
        with self._shop() as shop:
            try:
                found = sweep(shop, since)
            except (StripeUnavailable, StripeRefused) as trouble:
                self._log.warning("stripe_not_swept", kind=type(trouble).__name__, why=str(trouble))
                return None
        self._doubles_at = 0.0
        return found

    def _shop(self) -> AbstractContextManager[Shop]:
        return opened_shop(self._settings, self._now)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


@contextmanager
def opened_shop(settings: Settings, now: Callable[[], datetime]) -> Iterator[Shop]:
    """Raises: psycopg.OperationalError, as the worker's other loops know it."""
    assert settings.stripe_key is not None
    engine = open_engine(settings.database_url.get_secret_value())
    try:
        with open_stripe(settings.stripe_key.get_secret_value(), address=settings.stripe_api_base) as stripe:
            yield Shop(stripe, engine, settings.pages_url, now)
    except OperationalError as outage:
        if isinstance(outage.orig, psycopg.OperationalError):
            raise outage.orig from outage
        raise
    finally:
        engine.dispose()


async def apart(work: Callable[[], _Found]) -> _Found:
    """In a thread that does not keep the process from ending. Raises what the work raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Found] = loop.create_future()

    def finish(found: _Found | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(found)  # type: ignore[arg-type]  # without an error it was found

    def run() -> None:
        found, error = None, None
        try:
            found = work()
        except BaseException as raised:  # it is raised again where it is awaited
            error = raised
        loop.call_soon_threadsafe(finish, found, error)

    threading.Thread(target=run, name="stripe", daemon=True).start()
    return await done
