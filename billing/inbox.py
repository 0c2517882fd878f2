"""Stripe's events that came: each stored once by its id, tried until it is applied, and put by where a person must look."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from billing.arrivals import STORE, as_row
from billing.stripe_objects import Event
from billing.tables import stripe_events

# Between the tries of what Stripe, or we, could not do; after the last one a person is needed.
BACKOFF_SECONDS = (5, 30, 120, 600, 3600, 6 * 3600, 86_400)
KEPT_DAYS = 90
_AT_ONCE = 200


class EventUnknown(Exception):
    """No event of that id has come."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that is not applied yet. `payload` is what it happened to, as `webhooks.subject_of` reads it."""

    id: str
    type: str
    payload: Mapping[str, Any]
    tries: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """One that could not be applied; `next_try_at` None: it is left to `faregate stripe replay`."""

    id: str
    type: str
    created: datetime
    tries: int
    next_try_at: datetime | None
    problem: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """How the inbox stands."""

    applied: int
    waiting: int
    oldest_waiting: datetime | None
    stuck: Sequence[Stuck]


def store(connection: Connection, event: Event, now: datetime) -> bool:
    """Whether it is new."""
    return bool(connection.exec_driver_sql(STORE, as_row(event, now)).scalar_one())


def due(connection: Connection, now: datetime) -> list[Waiting]:
    """Oldest first; the order does not matter, as each thing is fetched as it is now."""
    columns = stripe_events.c
    query = (
        select(columns.id, columns.type, columns.payload, columns.tries)
        .where(columns.applied_at.is_(None), columns.next_try_at <= now)
        .order_by(columns.created, columns.id)
        .limit(_AT_ONCE)
    )
    return [Waiting(*row) for row in connection.execute(query)]


def applied(connection: Connection, ids: Collection[str], now: datetime) -> None:
    """In the transaction of what they brought about."""
    done = {"applied_at": now, "problem": None}
    connection.execute(update(stripe_events).where(stripe_events.c.id.in_(ids)).values(done))


def failed(connection: Connection, waiting: Sequence[Waiting], problem: str, now: datetime, *, is_outage: bool) -> None:
    """An outage is waited out for ever; anything else is given up after a while, and told."""
    for one in waiting:
        is_last = one.tries >= len(BACKOFF_SECONDS)
        seconds = BACKOFF_SECONDS[min(one.tries, 3 if is_outage else len(BACKOFF_SECONDS) - 1)]
        again = None if is_last and not is_outage else now + timedelta(seconds=seconds)
        values = {"tries": one.tries + 1, "next_try_at": again, "problem": problem[:500]}
        connection.execute(update(stripe_events).where(stripe_events.c.id == one.id).values(values))


def replay(connection: Connection, event_id: str, now: datetime) -> None:
    """It is applied again, as if it had just come. Raises: EventUnknown."""
    values = {"applied_at": None, "next_try_at": now, "tries": 0, "problem": None}
    found = connection.execute(update(stripe_events).where(stripe_events.c.id == event_id).values(values))
    if found.rowcount == 0:
        raise EventUnknown(f"No event {event_id!r} has come. `faregate stripe sweep` asks Stripe for what was missed.")


def backlog(connection: Connection) -> Backlog:
    columns = stripe_events.c
    is_waiting = columns.applied_at.is_(None)
    sums = select(
        func.count().filter(~is_waiting), func.count().filter(is_waiting), func.min(columns.received_at).filter(is_waiting)
    ).select_from(stripe_events)
    done, waiting, oldest = connection.execute(sums).one()
    query = (
        select(columns.id, columns.type, columns.created, columns.tries, columns.next_try_at, columns.problem)
        .where(is_waiting, columns.problem.is_not(None))
        .order_by(columns.created)
        .limit(50)
    )
    return Backlog(done, waiting, oldest, [Stuck(*row) for row in connection.execute(query)])


def forget(connection: Connection, now: datetime) -> int:
    """What was applied long ago; Stripe itself knows thirty days."""
    old = delete(stripe_events).where(stripe_events.c.applied_at < now - timedelta(days=KEPT_DAYS))
    return connection.execute(old).rowcount
