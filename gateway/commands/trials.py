"""`faregate trials`: some days of all models, once for each person."""

from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Annotated

import typer

from billing.accounts import find_account
from billing.trials import Trial, TrialRefused, TrialTerms, end, start, trial_of
from gateway.commands.record import actor, changing, reading, refused_by, say
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Trials: all models for some days, without a card.")
Account = Annotated[str, typer.Argument(help="The account's name or id.")]


def _address(given: str | None) -> str | None:
    try:
        return None if given is None else str(ip_address(given))
    except ValueError:
        raise typer.BadParameter(f"{given!r} is no address") from None


@app.command("start")
def start_(
    account: Account,
    *,
    email: Annotated[str | None, typer.Option(help="The verified address of its owner; the account's own without it.")] = None,
    address: Annotated[str | None, typer.Option(callback=_address, help="Where the owner came from.")] = None,
    as_json: Json = False,
) -> None:
    """Begin an account's trial, once its owner's e-mail address is verified."""
    settings = Settings.load()
    terms = TrialTerms(settings.trial_days, settings.trials_per_network)
    with refused_by(TrialRefused), changing() as connection:
        found = find_account(connection, account)
        begun = start(
            connection, found.id, email=email or found.email, address=address,
            terms=terms, now=datetime.now(UTC), actor=actor(),
        )  # fmt: skip
    _show(begun, as_json=as_json)


@app.command("end")
def end_(account: Account) -> None:
    """End a trial now."""
    with refused_by(TrialRefused), changing() as connection:
        end(connection, find_account(connection, account).id, datetime.now(UTC), actor=actor())


@app.command()
def show(account: Account, as_json: Json = False) -> None:
    """Show the trial that an account has, or had."""
    with reading() as connection:
        found = trial_of(connection, find_account(connection, account).id)
    if found is None:
        say("This account has had no trial. `faregate trials start` begins one.")
        raise typer.Exit(1)
    _show(found, as_json=as_json)


def _show(trial: Trial, *, as_json: bool) -> None:
    if as_json:
        show_json(trial)
        return
    row = (f"{trial.plan_code} v{trial.plan_version}", trial.started_at, trial.ends_at, trial.email_normal, trial.network)
    show_table(("Plan", "From", "Until", "Email", "Network"), [row])
