"""Sessions: begun by who has proved who they are, known by a random token of which only the HMAC is kept, and ended."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, insert, select, text, update
from uuid_utils.compat import uuid7

from billing.changes import audit
from gateway.access.tables import sessions
from gateway.access.viewer import Viewer

# Of nobody who looks at a page in all this time; and at the longest.
IDLE = timedelta(days=14)
LONGEST = timedelta(days=90)
# `seen_at` moves no more often: a page that is looked at need not be a write.
SEEN_EVERY = timedelta(minutes=1)
AGENT_LENGTH_MAX = 300

_LOOKED_UP = """
SELECT s.id, s.user_id, s.seen_at, u.email, u.role AS platform_role, a.id AS account_id, a.name AS account_name,
       m.role
  FROM sessions s
  JOIN users u ON u.id = s.user_id
  LEFT JOIN members m ON m.user_id = s.user_id AND m.account_id = s.account_id
  LEFT JOIN accounts a ON a.id = m.account_id
 WHERE s.hash = :hash AND s.ended_at IS NULL AND s.seen_at > :idle AND s.began_at > :oldest
"""
# The account that somebody was made a member of first.
_FIRST_ACCOUNT = "SELECT account_id FROM members WHERE user_id = :user ORDER BY created_at, account_id LIMIT 1"
_PLATFORM = {"admin": "platform", "operator": "operator"}


@dataclass(frozen=True, slots=True)
class Session:
    """As its owner may see it."""

    id: UUID
    address: str
    agent: str
    began_at: datetime
    seen_at: datetime


def begin(connection: Connection, user_id: UUID, *, pepper: str, now: datetime, address: str, agent: str) -> str:
    """The token: for the cookie, and kept nowhere."""
    token, session_id = secrets.token_urlsafe(32), uuid7()
    values = {
        "id": session_id, "user_id": user_id, "hash": _digest(pepper, token), "address": address,
        "account_id": connection.scalar(text(_FIRST_ACCOUNT), {"user": user_id}), "agent": agent[:AGENT_LENGTH_MAX],
        "began_at": now, "seen_at": now,
    }  # fmt: skip
    connection.execute(insert(sessions).values(values))
    audit(connection, "session.begin", actor=str(user_id), subject=str(session_id), details={"address": address})
    return token


def viewer_of(connection: Connection, token: str, *, pepper: str, now: datetime) -> Viewer | None:
    """None: the session was ended, is too old, or never was."""
    asked = {"hash": _digest(pepper, token), "idle": now - IDLE, "oldest": now - LONGEST}
    row = connection.execute(text(_LOOKED_UP), asked).first()
    if row is None:
        return None
    if now - row.seen_at > SEEN_EVERY:
        connection.execute(update(sessions).where(sessions.c.id == row.id).values(seen_at=now))
    return _viewer(row)


def list_sessions(connection: Connection, user_id: UUID, now: datetime) -> Sequence[Session]:
    """Those that are open, the one seen last first."""
    c = sessions.c
    query = (
        select(c.id, c.address, c.agent, c.began_at, c.seen_at)
        .where(c.user_id == user_id, c.ended_at.is_(None), c.seen_at > now - IDLE, c.began_at > now - LONGEST)
        .order_by(c.seen_at.desc(), c.id)
    )
    return [Session(*row) for row in connection.execute(query)]


def end(connection: Connection, session_id: UUID, user_id: UUID, *, now: datetime, actor: str) -> bool:
    """Whether it was one of this user's that was open."""
    c = sessions.c
    ended = update(sessions).where(c.id == session_id, c.user_id == user_id, c.ended_at.is_(None)).values(ended_at=now)
    was_open = connection.execute(ended).rowcount > 0
    if was_open:
        audit(connection, "session.end", actor=actor, subject=str(session_id), details={})
    return was_open


def _digest(pepper: str, token: str) -> bytes:
    return hmac.digest(pepper.encode(), b"session " + token.encode(), hashlib.sha256)


def _viewer(row: Row[Any]) -> Viewer:
    return Viewer(
        session_id=row.id, user_id=row.user_id, email=row.email, account_id=row.account_id, account_name=row.account_name,
        role=row.role, platform_role=_PLATFORM.get(row.platform_role),  # type: ignore[arg-type]  # CHECKed
    )  # fmt: skip
