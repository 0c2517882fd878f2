"""Where an account is told of its alerts: an address of its own, and the salt of the secret that signs what is sent there."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import urlsplit
from uuid import UUID

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from billing.changes import audit
from billing.tables import alert_targets, alerts

_NONE = "The account has named no address for its alerts. `faregate alerts set` names one."


class NoAlertTarget(Exception):
    """The account has named no address."""


@dataclass(frozen=True, slots=True)
class Target:
    account_id: UUID
    url: str
    salt: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Alert:
    """`used` and `quota` are fares of the day, as they were when `threshold` percent were reached."""

    day: date
    kind: str
    threshold: int
    used: int
    quota: int
    reached_at: datetime
    tries: int
    next_try_at: datetime | None
    delivered_at: datetime | None
    problem: str | None


def set_target(connection: Connection, account_id: UUID, url: str, *, salt_bytes: int, actor: str) -> Target:
    """Another address, another secret: what was sent with the old one can't be made up for the new one."""
    values = {"account_id": account_id, "url": url, "salt": secrets.token_bytes(salt_bytes), "created_at": func.now()}
    upsert = insert(alert_targets).values(values)
    row = connection.execute(
        upsert.on_conflict_do_update(index_elements=["account_id"], set_=values).returning(*alert_targets.c)
    ).one()
    # The host alone: some addresses are secrets themselves.
    _audit(connection, "alerts.set", account_id, {"host": urlsplit(url).hostname}, actor)
    return Target(*row)


def clear_target(connection: Connection, account_id: UUID, *, actor: str) -> None:
    """What waits to be sent is sent no more. Raises: NoAlertTarget."""
    if not connection.execute(delete(alert_targets).where(alert_targets.c.account_id == account_id)).rowcount:
        raise NoAlertTarget(_NONE)
    _audit(connection, "alerts.clear", account_id, {}, actor)


def target_of(connection: Connection, account_id: UUID) -> Target:
    """Raises: NoAlertTarget."""
    found = find_target(connection, account_id)
    if found is None:
        raise NoAlertTarget(_NONE)
    return found


def find_target(connection: Connection, account_id: UUID) -> Target | None:
    row = connection.execute(select(*alert_targets.c).where(alert_targets.c.account_id == account_id)).first()
    return None if row is None else Target(*row)


def alerts_of(connection: Connection, account_id: UUID, *, limit: int = 50) -> Sequence[Alert]:
    """Newest first."""
    columns = [alerts.c[name] for name in Alert.__slots__]
    query = (
        select(*columns).where(alerts.c.account_id == account_id).order_by(alerts.c.reached_at.desc(), alerts.c.threshold.desc())
    )
    return [Alert(*row) for row in connection.execute(query.limit(limit))]


def _audit(connection: Connection, action: str, account_id: UUID, details: dict[str, str | None], actor: str) -> None:
    audit(connection, action, actor=actor, account_id=account_id, subject=str(account_id), details=details)
