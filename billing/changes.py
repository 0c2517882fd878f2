"""What every change of an account, its plan or its keys brings along in one transaction: version, audit entry, staged job."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update

from billing.staging import STAGED
from billing.tables import accounts, audit_entries, staged_jobs
from billing.unknown import AccountUnknown


def account_changed(connection: Connection, account_id: UUID, action: str, *, actor: str, details: Mapping[str, Any]) -> int:
    """Returns the account's new version; snapshots of an older one are refused as soon as the staged job is done.

    Raises: AccountUnknown.
    """
    bumped = update(accounts).where(accounts.c.id == account_id).values(version=accounts.c.version + 1)
    version: int | None = connection.scalar(bumped.returning(accounts.c.version))
    if version is None:
        raise AccountUnknown(f"There is no account {account_id}. `faregate accounts list` shows them.")
    job = {"kind": "bump", "payload": {"account": str(account_id), "version": version}}
    connection.execute(insert(staged_jobs).values(job))
    connection.execute(select(func.pg_notify(STAGED, "")))
    audit(connection, action, actor=actor, account_id=account_id, subject=str(account_id), details=details)
    return version


def audit(
    connection: Connection, action: str, *, actor: str, subject: str, details: Mapping[str, Any], account_id: UUID | None = None
) -> None:
    """Who did what to what. Never a secret in `details`."""
    entry = {"actor": actor, "action": action, "account_id": account_id, "subject": subject, "details": dict(details)}
    connection.execute(insert(audit_entries).values(entry))
