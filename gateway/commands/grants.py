"""`faregate grants`: plans that an admin gives for a time, or that a contract gives."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from billing.accounts import find_account
from billing.grants import Grant, GrantUnknown, GrantWrong, give, grants_of, revoke
from gateway.commands.record import actor, changing, reading, refused_by
from gateway.commands.show import Json, show_json, show_table

app = typer.Typer(no_args_is_help=True, help="Plans that an admin gives, beside what an account has bought.")
Account = Annotated[str, typer.Argument(help="The account's name or id.")]


@app.command()
def add(
    account: Account,
    plan: Annotated[str, typer.Argument(help="The code of a plan; the version on offer is given.")],
    *,
    why: Annotated[str, typer.Option(help="For the audit entries.")],
    until: Annotated[datetime | None, typer.Option(help="UTC; until it is revoked without it.")] = None,
    from_: Annotated[datetime | None, typer.Option("--from", help="UTC; at once without it.")] = None,
    contract: Annotated[bool, typer.Option("--contract", help="It was agreed on, not given.")] = False,
    as_json: Json = False,
) -> None:
    """Give an account a plan. What it has bought stays, and the better of the two is in force within a second."""
    begins = datetime.now(UTC) if from_ is None else from_.replace(tzinfo=UTC)
    ends = None if until is None else until.replace(tzinfo=UTC)
    with refused_by(GrantWrong), changing() as connection:
        given = give(
            connection, find_account(connection, account).id, plan,
            kind="contract" if contract else "grant", from_at=begins, until_at=ends, actor=actor(), why=why,
        )  # fmt: skip
    _show([given], as_json=as_json, alone=True)


@app.command("list")
def list_(account: Annotated[str | None, typer.Argument(help="All accounts without it.")] = None, as_json: Json = False) -> None:
    """List grants and contracts, newest first."""
    with reading() as connection:
        found = grants_of(connection, None if account is None else find_account(connection, account).id)
    _show([*found], as_json=as_json)


@app.command("revoke")
def revoke_(grant: Annotated[UUID, typer.Argument(help="Its id.")], as_json: Json = False) -> None:
    """End one now."""
    with refused_by(GrantUnknown), changing() as connection:
        ended = revoke(connection, grant, datetime.now(UTC), actor=actor())
    _show([ended], as_json=as_json, alone=True)


def _show(found: list[Grant], *, as_json: bool, alone: bool = False) -> None:
    if as_json:
        show_json(found[0] if alone else found)
        return
    columns = ("Plan", "Kind", "From", "Until", "Revoked", "Why", "By", "Id")
    rows = [
        (f"{one.plan_code} v{one.plan_version}", one.kind, one.from_at, one.until_at, one.revoked_at, one.why, one.actor, one.id)
        for one in found
    ]  # fmt: skip
    show_table(columns, rows)
