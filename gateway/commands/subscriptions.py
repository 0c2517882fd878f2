"""`faregate subscriptions`: sell, change and end what an account pays for every month, and give back."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from sqlalchemy import RowMapping

from billing.accounts import find_account
from billing.checkout import buy_pack, buy_plan, portal
from billing.stripe_objects import Invoice
from billing.subscription_changes import Changed, begin_contract, cancel, downgrade, invoices, reactivate, refund, upgrade
from billing.subscriptions import subscriptions_of
from gateway.commands.record import actor, reading, say
from gateway.commands.show import Json, show_json, show_table
from gateway.commands.stripe_shop import opened_shop
from gateway.settings import Settings

app = typer.Typer(no_args_is_help=True, help="What accounts pay for at Stripe: plans, packs, contracts, invoices.")

Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name or id.")]
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The code of a plan; `faregate plans list` shows them.")]


@app.command()
def show(account: Account, as_json: Json = False) -> None:
    """Show the account's subscriptions as Stripe last told them, newest first."""
    with reading() as connection:
        found = subscriptions_of(connection, find_account(connection, account).id)
    _show(found, as_json=as_json)


@app.command()
def checkout(
    account: Account,
    plan: Plan,
    code: Annotated[str | None, typer.Option(help="A promotion code; without it one can be typed there.")] = None,
    as_json: Json = False,
) -> None:
    """Print the address of the page where a plan is bought."""
    with opened_shop(Settings.load()) as shop:
        _tell_page(buy_plan(shop, account, plan, actor=actor(), code=code), as_json=as_json)


@app.command()
def pack(
    account: Account,
    fares: Annotated[int, typer.Argument(help="How many requests; FAREGATE_PACKS says which packs there are.")],
    as_json: Json = False,
) -> None:
    """Print the address of the page where a pack of requests beyond the quota is bought."""
    settings = Settings.load()
    cents = settings.pack_prices.get(fares)
    if cents is None:
        say(f"There is no pack of {fares:,}. Sold are {', '.join(f'{one:,}' for one in settings.pack_prices)}.")
        raise typer.Exit(1)
    with opened_shop(settings) as shop:
        _tell_page(buy_pack(shop, account, fares, cents=cents, currency=settings.currency, actor=actor()), as_json=as_json)


@app.command("portal")
def portal_(account: Account, as_json: Json = False) -> None:
    """Print the address of the customer's own page: card, invoices, change of plan, cancellation."""
    settings = Settings.load()
    with opened_shop(settings) as shop:
        _tell_page(portal(shop, account, currency=settings.currency, actor=actor()), as_json=as_json)


@app.command("upgrade")
def upgrade_(account: Account, plan: Plan, as_json: Json = False) -> None:
    """Move to a dearer plan at once; the rest of the month is billed now."""
    with opened_shop(Settings.load()) as shop:
        changed = upgrade(shop, account, plan, actor=actor())
    _tell(account, changed, as_json=as_json)


@app.command("downgrade")
def downgrade_(account: Account, plan: Plan, as_json: Json = False) -> None:
    """Move to a cheaper plan when the period that is paid is over."""
    with opened_shop(Settings.load()) as shop:
        changed = downgrade(shop, account, plan, actor=actor())
    _tell(account, changed, as_json=as_json)


@app.command("cancel")
def cancel_(
    account: Account,
    now: Annotated[bool, typer.Option("--now", help="At once, without giving anything back (`refund` does that).")] = False,
    as_json: Json = False,
) -> None:
    """End with the period that is paid."""
    with opened_shop(Settings.load()) as shop:
        changed = cancel(shop, account, actor=actor(), at_once=now)
    _tell(account, changed, as_json=as_json)


@app.command("reactivate")
def reactivate_(account: Account, as_json: Json = False) -> None:
    """Take back a cancellation or a downgrade that waits for the end of the period."""
    with opened_shop(Settings.load()) as shop:
        changed = reactivate(shop, account, actor=actor())
    _tell(account, changed, as_json=as_json)


@app.command()
def contract(
    account: Account,
    cents: Annotated[int, typer.Option("--price-cents", min=1, help="A month's price, of this account alone.")],
    plan: Annotated[str, typer.Option(help="The code of a plan.")] = "enterprise",
    days: Annotated[int, typer.Option("--days-until-due", min=1, help="An invoice is to be paid within so many days.")] = 30,
    as_json: Json = False,
) -> None:
    """Begin a contract, billed by invoices that are sent; it is in force at once."""
    settings = Settings.load()
    with opened_shop(settings) as shop:
        changed = begin_contract(
            shop, account, plan, cents=cents, currency=settings.currency, days_until_due=days, actor=actor()
        )  # fmt: skip
    _tell(account, changed, as_json=as_json)


@app.command("invoices")
def invoices_(account: Account, as_json: Json = False) -> None:
    """List the account's invoices, newest first."""
    with opened_shop(Settings.load()) as shop:
        found = invoices(shop, account)
    if as_json:
        show_json([_plain(one) for one in found])
        return
    columns = ("Number", "Made", "Status", "Cents", "Paid", "Currency", "Page")
    show_table(columns, [(o.number or o.id, o.created, o.status, o.total_cents, o.paid_cents, o.currency, o.url) for o in found])


@app.command("refund")
def refund_(
    account: Account,
    invoice: Annotated[str, typer.Argument(help="Its number or id.")],
    why: Annotated[str, typer.Option(help="Goes into the audit entries and to Stripe.")],
    cents: Annotated[int | None, typer.Option(min=1, help="A part; all that is left without it.")] = None,
    as_json: Json = False,
) -> None:
    """Give back what was paid of an invoice. The plan goes on; `cancel --now` ends it."""
    with opened_shop(Settings.load()) as shop:
        given_back = refund(shop, account, invoice, cents=cents, why=why, actor=actor())
    if as_json:
        show_json({"invoice": invoice, "refunded_cents": given_back})
    else:
        say(f"{given_back:,} cents of {invoice} are given back.")


def _tell_page(url: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"url": url})
    else:
        typer.echo(url)


def _tell(account: str, changed: Changed, *, as_json: bool) -> None:
    which = changed.fetched.subscription.id
    with reading() as connection:
        found = [row for row in subscriptions_of(connection, find_account(connection, account).id) if row["id"] == which]
    if as_json:
        show_json({**_named(found[0]), "pay_url": changed.pay_url})
        return
    _show(found, as_json=False)
    if changed.pay_url is not None:
        say(f"The change waits until this bill is paid, a day at most: {changed.pay_url}")


def _show(found: Sequence[RowMapping], *, as_json: bool) -> None:
    if as_json:
        show_json([_named(row) for row in found])
        return
    columns = ("Subscription", "Plan", "Status", "Cents a month", "Currency", "Until", "Then", "Past due since")
    show_table(columns, [_row(one) for one in found], empty="None was ever bought.")


def _named(one: RowMapping) -> dict[str, Any]:
    return {str(column): value for column, value in one.items()}  # SQLAlchemy's own kind of string is none of orjson's


def _row(one: RowMapping) -> tuple[Any, ...]:
    plan = "none of ours" if one["plan_code"] is None else f"{one['plan_code']} v{one['plan_version']}"
    return (
        one["id"], plan, one["status"], one["amount_cents"], one["currency"], one["ended_at"] or one["current_period_end"],
        _then(one), one["past_due_since"],
    )  # fmt: skip


def _then(one: RowMapping) -> str:
    if one["ended_at"] is not None:
        return "ended"
    if one["cancel_at"] is not None:
        return "ends"
    return "renews" if one["pending_plan_code"] is None else f"{one['pending_plan_code']} v{one['pending_plan_version']}"


def _plain(one: Invoice) -> dict[str, Any]:
    return {
        "id": one.id, "number": one.number, "status": one.status, "created": one.created, "due_at": one.due_at,
        "total_cents": one.total_cents, "paid_cents": one.paid_cents, "currency": one.currency, "url": one.url,
    }  # fmt: skip
