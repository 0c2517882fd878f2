"""`faregate packs`: requests beyond the quota that were bought or given, and the customer's own cap on their use."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from billing.accounts import find_account
from billing.packs import PackWrong, given, packs_of, set_cap
from gateway.commands.record import actor, changing, reading, refused_by
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Requests beyond the day's quota, for plans that go on with packs.")
Account = Annotated[str, typer.Argument(help="The account's name or id.")]


@app.command("list")
def list_(account: Account, as_json: Json = False) -> None:
    """List an account's packs, oldest first: they are used in this order."""
    with reading() as connection:
        found = packs_of(connection, find_account(connection, account).id)
    if as_json:
        show_json([{**{name: getattr(one, name) for name in one.__slots__}, "left": one.left} for one in found])
        return
    columns = ("Bought", "Requests", "Used", "Left", "Taken back", "Cents", "Currency", "Payment")
    rows = [
        (one.bought_at, one.fares, one.used, one.left, one.taken_back, one.amount_cents, one.currency, one.payment_intent)
        for one in found
    ]
    show_table(columns, rows)


@app.command()
def give(
    account: Account,
    requests: Annotated[int, typer.Argument(min=1, help="How many requests (fares).")],
    *,
    why: Annotated[str, typer.Option(help="For the audit entries.")],
) -> None:
    """Give a pack that nobody pays for."""
    currency = Settings.load().currency
    with refused_by(PackWrong), changing() as connection:
        found = find_account(connection, account).id
        given(connection, found, requests, currency=currency, at=datetime.now(UTC), actor=actor(), why=why)


@app.command()
def cap(
    account: Account,
    requests: Annotated[int | None, typer.Argument(min=0, help="A month (UTC); without it the cap is taken away.")] = None,
) -> None:
    """Set how many requests of packs the account may use in a month."""
    with refused_by(PackWrong), changing() as connection:
        set_cap(connection, find_account(connection, account).id, requests, actor=actor())
