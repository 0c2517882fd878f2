"""`faregate accounts`: make, list, suspend, resume and move accounts."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer
from sqlalchemy import Connection

from billing.accounts import Account, create_account, find_account, list_accounts, resume_account, set_plan, suspend_account
from billing.entitled import plans_at
from billing.entitlements import Term
from gateway.commands.record import actor, changing, reading
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Who uses Faregate: accounts and the plans they are on.")

Name = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name or id.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name that no other account has.")],
    email: Annotated[str, typer.Option(help="Where to reach its owner.")],
    plan: Annotated[str, typer.Option(help="The code of a plan; `faregate plans list` shows them.")] = "free",
    as_json: Json = False,
) -> None:
    """Make an account."""
    with changing() as connection:
        had = _had(connection, [create_account(connection, name=name, email=email, plan_code=plan, actor=actor())])
    _show(had, as_json=as_json, alone=True)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List all accounts."""
    with reading() as connection:
        had = _had(connection, list_accounts(connection))
    _show(had, as_json=as_json)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show one account."""
    with reading() as connection:
        had = _had(connection, [find_account(connection, name)])
    _show(had, as_json=as_json, alone=True)


@app.command()
def suspend(name: Name, as_json: Json = False) -> None:
    """Stop every key of an account, within a second."""
    _change(name, lambda connection, account: suspend_account(connection, account, actor=actor()), as_json=as_json)


@app.command()
def resume(name: Name, as_json: Json = False) -> None:
    """Let a suspended account's keys work again."""
    _change(name, lambda connection, account: resume_account(connection, account, actor=actor()), as_json=as_json)


@app.command("set-plan")
def set_plan_(name: Name, plan: Annotated[str, typer.Argument(help="The code of a plan.")], as_json: Json = False) -> None:
    """Move an account to the version of a plan that is on offer, at once; what was used today stays used."""
    _change(name, lambda connection, account: set_plan(connection, account, plan, actor=actor()), as_json=as_json)


def _change(name: str, change: Callable[[Connection, UUID], Account], *, as_json: bool) -> None:
    with changing() as connection:
        had = _had(connection, [change(connection, find_account(connection, name).id)])
    _show(had, as_json=as_json, alone=True)


def _had(connection: Connection, found: list[Account]) -> list[tuple[Account, Term]]:
    """With what each has now; its own plan may be another (docs/entitlements.md)."""
    terms = plans_at(connection, datetime.now(UTC), Settings.load().grace_days, [one.id for one in found])
    return [(one, terms[one.id]) for one in found]


def _show(had: list[tuple[Account, Term]], *, as_json: bool, alone: bool = False) -> None:
    if as_json:
        plain = [
            {**asdict(one), "has": {"plan": term.plan.code, "version": term.plan.version, "by": term.source}} for one, term in had
        ]
        show_json(plain[0] if alone else plain)
        return
    columns = ("Name", "State", "Plan", "By", "Own plan", "Email", "Id", "Made")
    rows = [
        (one.name, one.state, f"{term.plan.code} v{term.plan.version}", term.source, f"{one.plan_code} v{one.plan_version}",
         one.email, one.id, one.created_at)
        for one, term in had
    ]  # fmt: skip
    show_table(columns, rows)
