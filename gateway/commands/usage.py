"""`faregate usage`: what an account has used, by day, and what it would have cost by the token."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from billing.accounts import find_account
from billing.usage import usage_by_day
from gateway.commands.export import export
from gateway.commands.record import reading
from gateway.commands.savings import savings, what_if_
from gateway.commands.show import Json, show_json, show_table

app = typer.Typer(no_args_is_help=True, help="What an account has used.")
app.command()(export)
app.command()(savings)
app.command("what-if")(what_if_)


@app.command()
def show(
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="How many days, today included (UTC).")] = 30,
    as_json: Json = False,
) -> None:
    """Show fares, calls and tokens by day, newest first; days without a call are left out."""
    today = datetime.now(UTC).date()
    with reading() as connection:
        found = usage_by_day(connection, find_account(connection, account).id, today - timedelta(days=days - 1), today)
    if as_json:
        show_json(found)
        return
    columns = ("Day", "Fares", "Of packs", "Posted", "Voided", "Expired", "Hang-ups", "Prompt tokens", "Cached", "Output tokens")
    rows = [
        (day.day, day.fares, day.pack_fares, day.posted, day.voided, day.expired, day.hangups, day.prompt_tokens,
         day.cached_tokens, day.completion_tokens)
        for day in found
    ]  # fmt: skip
    show_table(columns, rows, empty="Nothing was used in these days.")
