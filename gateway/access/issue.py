"""Keys: issued, listed, rotated with an overlap and revoked. The key itself is returned once and kept nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, func, insert, select, update
from uuid_utils.compat import uuid7

from billing.changes import account_changed
from billing.constraints import named_constraints
from billing.tables import keys
from gateway.access.caller import SCOPES
from gateway.access.keys import SHOWN_END_LENGTH, SHOWN_PREFIX_LENGTH, digest, mint


class KeyWrong(Exception):
    """The key can't be issued like this; the message says what to change."""


class KeyNotThere(Exception):
    """No key has this id."""


class KeyEnded(Exception):
    """The key was revoked or has expired, so there is nothing left to rotate."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a key may do. None: no limit of the key's own."""

    name: str
    scopes: Sequence[str] = SCOPES
    allowed_models: Sequence[str] | None = None
    quota_per_day: int | None = None
    requests_per_minute: int | None = None
    networks: Sequence[IPv4Network | IPv6Network] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown, to anyone who may see the account."""

    id: UUID
    account_id: UUID
    shown: str
    terms: Terms
    revoked_at: datetime | None
    rotated_from: UUID | None
    created_at: datetime
    last_used_at: datetime | None

    def state(self, now: datetime) -> str:
        if self.revoked_at is not None:
            return "revoked"
        if self.terms.expires_at is not None and self.terms.expires_at <= now:
            return "expired"
        return "active"


@dataclass(frozen=True, slots=True)
class Issued:
    """`token` is the key itself: show it once."""

    key: Key
    token: str


def issue_key(connection: Connection, account_id: UUID, terms: Terms, *, pepper: str, actor: str) -> Issued:
    """Raises: AccountUnknown, KeyWrong."""
    return _issue(connection, account_id, terms, pepper=pepper, actor=actor)


def list_keys(connection: Connection, account_id: UUID | None = None) -> list[Key]:
    """Newest first; of every account if none is named."""
    query = select(*keys.c).order_by(keys.c.created_at.desc(), keys.c.id.desc())
    if account_id is not None:
        query = query.where(keys.c.account_id == account_id)
    return [_key(row) for row in connection.execute(query)]


def find_key(connection: Connection, key_id: UUID) -> Key:
    """Raises: KeyNotThere."""
    row = connection.execute(select(*keys.c).where(keys.c.id == key_id)).first()
    if row is None:
        raise KeyNotThere(f"There is no key {key_id}. `faregate keys list` shows them.")
    return _key(row)


def revoke_key(connection: Connection, key_id: UUID, *, actor: str) -> Key:
    """For good. Revoking again changes nothing. Raises: KeyNotThere."""
    key = find_key(connection, key_id)
    account_changed(connection, key.account_id, "key.revoke", actor=actor, details={"key": str(key_id)})
    revoked = update(keys).where(keys.c.id == key_id).values(revoked_at=func.coalesce(keys.c.revoked_at, func.now()))
    return _key(connection.execute(revoked.returning(*keys.c)).one())


def rotate_key(connection: Connection, key_id: UUID, *, overlap: timedelta, pepper: str, actor: str) -> Issued:
    """A new key on the same terms; the old one works for `overlap` more, unless it ends before. Raises: KeyNotThere, KeyEnded."""
    old = find_key(connection, key_id)
    now = datetime.now(UTC)
    if old.state(now) != "active":
        raise KeyEnded(f"The key {old.shown} is {old.state(now)}. Create a new one instead.")
    # Its terms have been shortened by then; a successor that inherits them would end with it.
    successor = connection.scalar(select(keys.c.id).where(keys.c.rotated_from == key_id, keys.c.revoked_at.is_(None)))
    if successor is not None:
        raise KeyEnded(f"The key {old.shown} was rotated already. Rotate its successor, {successor}, instead.")
    made = _issue(connection, old.account_id, old.terms, pepper=pepper, actor=actor, rotated_from=key_id)
    ends = now + overlap
    if old.terms.expires_at is None or ends < old.terms.expires_at:
        connection.execute(update(keys).where(keys.c.id == key_id).values(expires_at=ends))
    return made


def _issue(
    connection: Connection, account_id: UUID, terms: Terms, *, pepper: str, actor: str, rotated_from: UUID | None = None
) -> Issued:
    _check(terms)
    token, key_id = mint(), uuid7()
    details = {"key": str(key_id), "name": terms.name, "rotated_from": str(rotated_from) if rotated_from else None}
    account_changed(connection, account_id, "key.rotate" if rotated_from else "key.issue", actor=actor, details=details)
    values: dict[str, Any] = {
        "id": key_id,
        "account_id": account_id,
        "hash": digest(pepper, token),
        "prefix": token[:SHOWN_PREFIX_LENGTH],
        "last4": token[-SHOWN_END_LENGTH:],
        "name": terms.name,
        "scopes": list(terms.scopes),
        "allowed_models": None if terms.allowed_models is None else list(terms.allowed_models),
        "quota_per_day": terms.quota_per_day,
        "requests_per_minute": terms.requests_per_minute,
        "networks": None if terms.networks is None else [str(network) for network in terms.networks],
        "expires_at": terms.expires_at,
        "rotated_from": rotated_from,
    }
    with named_constraints(_WRONG):
        row = connection.execute(insert(keys).values(values).returning(*keys.c)).one()
    return Issued(_key(row), token)


_WRONG = {
    "keys_name_bounds": KeyWrong("The name of a key has 1 to 200 characters."),
    "keys_quota_bounds": KeyWrong("The quota is requests a day, 0 to 1,000,000,000,000."),
    "keys_rate_positive": KeyWrong("Requests per minute are 1 or more."),
}


def _check(terms: Terms) -> None:
    unknown = set(terms.scopes) - set(SCOPES)
    if unknown or not terms.scopes:
        raise KeyWrong(f"Scopes are one or more of {', '.join(SCOPES)}; not {', '.join(sorted(unknown)) or 'none'}.")


def _key(row: Row[tuple[Any, ...]]) -> Key:
    terms = Terms(
        name=row.name,
        scopes=tuple(row.scopes),
        allowed_models=None if row.allowed_models is None else tuple(row.allowed_models),
        quota_per_day=row.quota_per_day,
        requests_per_minute=row.requests_per_minute,
        networks=None if row.networks is None else tuple(row.networks),
        expires_at=row.expires_at,
    )
    return Key(
        id=row.id,
        account_id=row.account_id,
        shown=f"{row.prefix}...{row.last4}",
        terms=terms,
        revoked_at=row.revoked_at,
        rotated_from=row.rotated_from,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )
