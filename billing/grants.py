"""Plans that an admin gives an account, or agrees on in a contract: who, why, from when and until when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, Row, insert, select, update
from uuid_utils.compat import uuid7

from billing.changes import account_changed
from billing.constraints import named_constraints
from billing.plan_versions import plan_on_offer
from billing.tables import grants

Kind = Literal["grant", "contract"]


class GrantWrong(Exception):
    """Its times or its reason can't be those of a grant."""


class GrantUnknown(Exception):
    """There is no such grant, or it is revoked already."""


@dataclass(frozen=True, slots=True)
class Grant:
    """`until_at` None: until it is revoked."""

    id: UUID
    account_id: UUID
    kind: Kind
    plan_code: str
    plan_version: int
    from_at: datetime
    until_at: datetime | None
    actor: str
    why: str
    made_at: datetime
    revoked_at: datetime | None


def give(
    connection: Connection, account_id: UUID, plan_code: str, *,
    kind: Kind, from_at: datetime, until_at: datetime | None, actor: str, why: str,
) -> Grant:  # fmt: skip
    """The version of the plan that is on offer. Raises: AccountUnknown, PlanUnknown, GrantWrong."""
    plan = plan_on_offer(connection, plan_code)
    details = {"plan": f"{plan.code}@{plan.version}", "from": from_at.isoformat(), "why": why}
    details["until"] = "revoked" if until_at is None else until_at.isoformat()
    account_changed(connection, account_id, f"{kind}.give", actor=actor, details=details)
    values = {
        "id": uuid7(), "account_id": account_id, "kind": kind, "plan_code": plan.code, "plan_version": plan.version,
        "from_at": from_at, "until_at": until_at, "actor": actor, "why": why,
    }  # fmt: skip
    errors = {
        "grants_end_after_beginning": GrantWrong("It has to end after it begins."),
        "grants_why_bounds": GrantWrong("Say why, in 1 to 500 characters."),
    }
    with named_constraints(errors):
        return _grant(connection.execute(insert(grants).values(values).returning(*grants.c)).one())


def revoke(connection: Connection, grant_id: UUID, at: datetime, *, actor: str) -> Grant:
    """In force on every gateway within a second. Raises: GrantUnknown."""
    ended = update(grants).where(grants.c.id == grant_id, grants.c.revoked_at.is_(None)).values(revoked_at=at)
    row = connection.execute(ended.returning(*grants.c)).first()
    if row is None:
        raise GrantUnknown(f"There is no grant {grant_id} that could be revoked. `faregate grants list` shows them.")
    grant = _grant(row)
    details = {"grant": str(grant.id), "plan": f"{grant.plan_code}@{grant.plan_version}"}
    account_changed(connection, grant.account_id, f"{grant.kind}.revoke", actor=actor, details=details)
    return grant


def grants_of(connection: Connection, account_id: UUID | None = None) -> Sequence[Grant]:
    """Newest first; None: of all accounts."""
    query = select(*grants.c).order_by(grants.c.made_at.desc(), grants.c.id)
    if account_id is not None:
        query = query.where(grants.c.account_id == account_id)
    return [_grant(row) for row in connection.execute(query)]


def _grant(row: Row[tuple[object, ...]]) -> Grant:
    return Grant(**row._mapping)  # noqa: SLF001 - documented under this name
