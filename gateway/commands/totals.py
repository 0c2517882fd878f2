"""`faregate ledger totals` and `recent`: the whole installation's use, and an account's latest calls."""

from dataclasses import asdict, astuple
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from billing.accounts import find_account
from billing.entitled import plans_at
from billing.overview import days_of_all, heaviest, monthly_revenue
from billing.recent import latest_calls
from gateway.commands.record import reading
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings

_DAY = ("Day", "Accounts", "Fares", "Posted", "Voided", "Expired", "Prompt tokens", "Cached", "Output tokens")
_ACCOUNT = ("Account", "Plan", "Fares", "Calls", "Prompt tokens", "Output tokens")
_CALL = ("At", "Model", "Endpoint", "Fare", "Billed", "Reason", "Status", "ms", "Prompt tokens", "Output tokens")


def totals(
    days: Annotated[int, typer.Option(min=1, max=3650, help="How many days, today included (UTC).")] = 30, as_json: Json = False
) -> None:
    """Show what all accounts used, which used most, and what subscriptions bring a month."""
    today = datetime.now(UTC).date()
    first = today - timedelta(days=days - 1)
    with reading() as connection:
        used, most, paid = days_of_all(connection, first, today), heaviest(connection, first, today), monthly_revenue(connection)
        terms = plans_at(connection, datetime.now(UTC), Settings.load().grace_days, [one.account_id for one in most])
    codes = [terms[one.account_id].plan.code if one.account_id in terms else None for one in most]
    if as_json:
        heavy = [{**asdict(one), "plan_code": code} for one, code in zip(most, codes, strict=True)]
        show_json({"days": used, "accounts": heavy, "revenue": paid})
        return
    show_table(_DAY, [astuple(day) for day in used], empty="Nothing was used in these days.")
    if most:
        rows = [(one.name or one.account_id, code, *astuple(one)[2:]) for one, code in zip(most, codes, strict=True)]
        show_table(_ACCOUNT, rows)
    if paid:
        show_table(("Plan", "Currency", "Subscriptions", "Cents a month"), [astuple(one) for one in paid])


def recent(
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many calls.")] = 50,
    as_json: Json = False,
) -> None:
    """Show an account's latest calls, newest first."""
    with reading() as connection:
        now = datetime.now(UTC) + timedelta(minutes=1)  # a gateway's clock may be ahead of this one
        calls = latest_calls(connection, find_account(connection, account).id, now, limit=limit)
    if as_json:
        show_json(calls)
        return
    rows = [
        (call.at, call.model, call.endpoint, call.fare, call.billed, call.reason, call.status, call.total_ms, call.prompt_tokens,
         call.completion_tokens)
        for call in calls
    ]  # fmt: skip
    show_table(_CALL, rows, empty="No call is in the ledger.")
