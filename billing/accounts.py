"""Accounts: made, listed, suspended, resumed and moved to another plan."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Row, Select, insert, select, update
from uuid_utils.compat import uuid7

from billing.changes import account_changed, audit
from billing.constraints import named_constraints
from billing.plan_versions import plan_on_offer
from billing.tables import accounts
from billing.unknown import AccountUnknown


class AccountNameTaken(Exception):
    """Names are unique, so that a person can say which account is meant."""


class AccountWrong(Exception):
    """Name or email can't be those of an account."""


@dataclass(frozen=True, slots=True)
class Account:
    """`version` counts changes of the account, its plan and its keys; `pack_fares_per_month` is its own cap (None: none)."""

    id: UUID
    name: str
    email: str
    state: str
    plan_code: str
    plan_version: int
    version: int
    created_at: datetime
    pack_fares_per_month: int | None = None


def create_account(connection: Connection, *, name: str, email: str, plan_code: str, actor: str) -> Account:
    """On the version of the plan that is on offer. Raises: PlanUnknown, AccountNameTaken, AccountWrong."""
    plan = plan_on_offer(connection, plan_code)
    values = {"id": uuid7(), "name": name, "email": email, "plan_code": plan.code, "plan_version": plan.version}
    errors = {
        "accounts_name_key": AccountNameTaken(f"There is an account named {name!r} already. Choose another name."),
        "accounts_name_bounds": AccountWrong("The name has 1 to 200 characters."),
        "accounts_email_spelling": AccountWrong(f"{email!r} is no email address."),
    }
    with named_constraints(errors):
        row = connection.execute(insert(accounts).values(values).returning(*accounts.c)).one()
    account = _account(row)
    details = {"name": name, "plan": f"{plan.code}@{plan.version}"}
    audit(connection, "account.create", actor=actor, account_id=account.id, subject=str(account.id), details=details)
    return account


def list_accounts(connection: Connection) -> list[Account]:
    return [_account(row) for row in connection.execute(select(*accounts.c).order_by(accounts.c.name))]


def find_account(connection: Connection, name_or_id: str) -> Account:
    """Raises: AccountUnknown."""
    row = connection.execute(_named(name_or_id)).first()
    if row is None:
        raise AccountUnknown(f"There is no account {name_or_id!r}. `faregate accounts list` shows them.")
    return _account(row)


def suspend_account(connection: Connection, account_id: UUID, *, actor: str) -> Account:
    """Every key of it stops working. Raises: AccountUnknown."""
    return _set_state(connection, account_id, "suspended", actor=actor)


def resume_account(connection: Connection, account_id: UUID, *, actor: str) -> Account:
    """Raises: AccountUnknown."""
    return _set_state(connection, account_id, "active", actor=actor)


def set_plan(connection: Connection, account_id: UUID, plan_code: str, *, actor: str) -> Account:
    """At once; what was used today stays used. Raises: PlanUnknown, AccountUnknown."""
    plan = plan_on_offer(connection, plan_code)
    account_changed(connection, account_id, "account.set_plan", actor=actor, details={"plan": f"{plan.code}@{plan.version}"})
    moved = update(accounts).where(accounts.c.id == account_id).values(plan_code=plan.code, plan_version=plan.version)
    return _account(connection.execute(moved.returning(*accounts.c)).one())


def _set_state(connection: Connection, account_id: UUID, state: str, *, actor: str) -> Account:
    account_changed(connection, account_id, "account.set_state", actor=actor, details={"state": state})
    changed = update(accounts).where(accounts.c.id == account_id).values(state=state)
    return _account(connection.execute(changed.returning(*accounts.c)).one())


def _named(name_or_id: str) -> Select[tuple[object, ...]]:
    try:
        return select(*accounts.c).where(accounts.c.id == UUID(name_or_id))
    except ValueError:
        return select(*accounts.c).where(accounts.c.name == name_or_id)


def _account(row: Row[tuple[object, ...]]) -> Account:
    return Account(**row._mapping)  # noqa: SLF001 - documented under this name
