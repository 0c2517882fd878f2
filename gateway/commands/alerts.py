"""`faregate alerts`: where an account is told that its quota runs out, and what it was told."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated
from uuid import uuid4

import orjson
import typer

from billing.accounts import find_account
from billing.alert_targets import Alert, NoAlertTarget, alerts_of, clear_target, find_target, set_target, target_of
from gateway.commands.record import actor, changing, reading, refused_by, say
from gateway.commands.show import Json, show_json, show_table
from gateway.fetch.address import AddressWrong, web_address
from gateway.fetch.policy import Policy
from gateway.fetch.post import NotDelivered, Poster
from gateway.settings import Settings
from gateway.signing import SALT_BYTES, signed, signing_secret, spelled

app = typer.Typer(no_args_is_help=True, help="Where an account is told that its quota runs out.")
Account = Annotated[str, typer.Argument(help="The account's name or id.")]


@app.command("set")
def set_(
    account: Account,
    url: Annotated[str, typer.Argument(help="An https address that takes a signed POST (docs/alerts.md).")],
    as_json: Json = False,
) -> None:
    """Name the address, in place of the one before. Its signing secret is shown now and never again."""
    settings = Settings.load()
    _check(url, Policy.of(settings.alerts_allowed))
    with changing() as connection:
        target = set_target(connection, find_account(connection, account).id, url, salt_bytes=SALT_BYTES, actor=actor())
    secret = spelled(signing_secret(settings.key_pepper.get_secret_value(), target.account_id, target.salt))
    if as_json:
        show_json({"account": target.account_id, "url": url, "secret": secret})
        return
    typer.echo(secret)
    say("That is the secret which signs what is sent there; it is not shown again. `faregate alerts test` sends a first message.")


@app.command()
def clear(account: Account) -> None:
    """Send nothing any more."""
    with refused_by(NoAlertTarget), changing() as connection:
        clear_target(connection, find_account(connection, account).id, actor=actor())


@app.command()
def show(account: Account, as_json: Json = False) -> None:
    """Show the address and the latest alerts, newest first."""
    with reading() as connection:
        found = find_account(connection, account).id
        told = alerts_of(connection, found)
        url = None if (target := find_target(connection, found)) is None else target.url
    if as_json:
        show_json({"url": url, "alerts": told})
        return
    show_table(("Alerts go to",), [(url,)])
    columns = ("Day", "Percent", "Used", "Quota", "Reached", "Delivered", "Tries", "Problem")
    rows = [(one.day, one.threshold, one.used, one.quota, one.reached_at, _state(one), one.tries, one.problem) for one in told]
    show_table(columns, rows, empty="No threshold was reached.")


@app.command()
def test(account: Account) -> None:
    """Send a signed message of the type `test` now. Exit code 1 when the address does not take it."""
    settings = Settings.load()
    with refused_by(NoAlertTarget), reading() as connection:
        target = target_of(connection, find_account(connection, account).id)
    secret = signing_secret(settings.key_pepper.get_secret_value(), target.account_id, target.salt)
    body = orjson.dumps({"type": "test", "timestamp": datetime.now(UTC), "data": {"account": {"id": str(target.account_id)}}})
    headers = signed(secret, f"test_{uuid4()}", int(time.time()), body)
    try:
        asyncio.run(Poster(Policy.of(settings.alerts_allowed)).post(target.url, headers, body))
    except NotDelivered as problem:
        say(f"It was not delivered: {problem}.")
        raise typer.Exit(1) from None
    say("Delivered.")


def _check(url: str, policy: Policy) -> None:
    try:
        there = web_address(url)
    except AddressWrong as wrong:
        raise typer.BadParameter(f"{url}: {wrong}") from None
    if not (there.is_tls or policy.is_listed(there)):
        raise typer.BadParameter(f"{url}: alerts go to https addresses; FAREGATE_ALERTS_ALLOWED names your own hosts")


def _state(alert: Alert) -> object:
    if alert.delivered_at is not None:
        return alert.delivered_at
    return "waits" if alert.next_try_at is not None else ("given up" if alert.tries else "not told")
