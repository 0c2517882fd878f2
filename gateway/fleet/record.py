"""The fleet's record, changed by operators: each change is one transaction with its audit entry, and all gateways follow it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, func, insert, select, update

from backends.entry import Entry
from backends.states import Event, State, after
from billing.changes import audit
from gateway.fleet.tables import replicas


class ReplicaUnknown(Exception):
    """No gateway has ever told of a replica with this id."""


class ReplicaExists(Exception):
    """There is one with this id."""


class ReplicaNotYours(Exception):
    """It is not there because somebody added it, so it can't be removed either."""


class ReplicaWrong(Exception):
    """What was said of it can't be."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """`origin`: `file`, `added`, or `found` (behind a name)."""

    id: str
    origin: str
    entry: dict[str, Any] | None
    state: State
    version: int
    changed_at: datetime


def recorded(connection: Connection) -> list[Recorded]:
    return [_recorded(row) for row in connection.execute(select(*replicas.c).order_by(replicas.c.id))]


def add(connection: Connection, given: Mapping[str, Any], *, actor: str) -> Recorded:
    """Raises: ReplicaWrong, ReplicaExists."""
    try:
        entry = Entry.model_validate(given)
    except ValidationError as error:
        mistake = error.errors(include_url=False)[0]
        where = "".join(f"{part}: " for part in mistake["loc"])
        raise ReplicaWrong(f"{where}{mistake['msg'].removeprefix('Value error, ')}") from None
    if entry.url is None or entry.price is not None:
        raise ReplicaWrong("names and upstreams are things of the fleet file")
    there = _locked(connection, entry.id)
    if there is not None and (there.state is not State.GONE or there.origin != "added"):
        raise ReplicaExists(f"There is a replica {entry.id!r} already, {there.state}.")
    values = {"origin": "added", "entry": dict(given), "state": State.STARTING}
    if there is None:
        connection.execute(insert(replicas).values(id=entry.id, **values))
        audit(connection, "replica.come", actor=actor, subject=entry.id, details={"entry": dict(given)})
    else:
        _write(connection, there, values)
        audit(connection, "replica.come", actor=actor, subject=entry.id, details={"entry": dict(given), "from": there.state})
    return _found(connection, entry.id)


def change(connection: Connection, replica_id: str, event: Event, *, actor: str) -> Recorded:
    """Raises: ReplicaUnknown, NotPossible, ReplicaNotYours."""
    there = _found(connection, replica_id)
    if event is Event.LEAVE and there.origin != "added":
        why = "is in the fleet file: take it out there" if there.origin == "file" else "is found by its name: stop it there"
        raise ReplicaNotYours(f"{replica_id} {why}. `faregate backends drain` keeps new calls from it.")
    if event is Event.DRAIN and there.state is State.DRAINING:
        return there  # asked again, to wait for it
    state = after(there.state, event)
    _write(connection, there, {"state": state})
    details = {"from": there.state, "to": state}
    audit(connection, f"replica.{event}", actor=actor, subject=replica_id, details=details)
    return _found(connection, replica_id)


def _write(connection: Connection, there: Recorded, values: Mapping[str, Any]) -> None:
    changed = update(replicas).where(replicas.c.id == there.id)
    connection.execute(changed.values(version=replicas.c.version + 1, changed_at=func.now(), **values))


def _found(connection: Connection, replica_id: str) -> Recorded:
    found = _locked(connection, replica_id)
    if found is None:
        raise ReplicaUnknown(f"There is no replica {replica_id!r}. `faregate backends list` shows them.")
    return found


def _locked(connection: Connection, replica_id: str) -> Recorded | None:
    row = connection.execute(select(*replicas.c).where(replicas.c.id == replica_id).with_for_update()).first()
    return None if row is None else _recorded(row)


def _recorded(row: Any) -> Recorded:
    return Recorded(row.id, row.origin, row.entry, State(row.state), row.version, row.changed_at)
