"""`faregate keys`: create, list, rotate and revoke API keys."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated
from uuid import UUID

import typer

from billing.accounts import find_account, list_accounts
from gateway.access.caller import SCOPES
from gateway.access.issue import Issued, Key, Terms, issue_key, list_keys, revoke_key, rotate_key
from gateway.commands.durations import duration
from gateway.commands.record import actor, changing, reading, refusals, say
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from models.catalogue import Catalogue

app = typer.Typer(no_args_is_help=True, help="API keys: shown once, kept as an HMAC.")


def _key_id(written: str) -> UUID:
    try:
        return UUID(written.strip())
    except ValueError:
        raise typer.BadParameter(f"{written!r} is no key's id; `faregate keys list` shows them") from None


def _life(written: str) -> timedelta:
    if not (life := duration(written)):
        raise typer.BadParameter(f"a key that lives {written} ends as it is made; write 90d, or nothing for a key without an end")
    return life


KeyId = Annotated[UUID, typer.Argument(parser=_key_id, metavar="KEY", help="The key's id; `faregate keys list` shows it.")]


def _network(written: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(written.strip(), strict=False)
    except ValueError:
        raise typer.BadParameter(f"{written!r} is no address or network; write 192.0.2.7 or 10.0.0.0/8") from None


@app.command()
def create(
    account: Annotated[str, typer.Argument(help="The account's name or id.")],
    name: Annotated[str, typer.Option(help="What the key is for.")] = "key",
    scope: Annotated[list[str] | None, typer.Option(help=f"One or more of {', '.join(SCOPES)}; all of them without it.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model that it may use; all of the plan without it.")] = None,
    quota_per_day: Annotated[int | None, typer.Option(help="A daily quota of the key's own.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="A rate of the key's own.")] = None,
    network: Annotated[
        list[IPv4Network] | None,
        typer.Option(parser=_network, metavar="NETWORK", help="Where it may be used from; several times for several."),
    ] = None,
    expires_in: Annotated[
        timedelta | None, typer.Option(parser=_life, help="As in 90d; never without it.", metavar="SPAN")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a key and show it, this once."""
    with refusals():
        models = None if not model else [Catalogue.load().resolve(one).id for one in model]
    terms = Terms(
        name=name,
        scopes=tuple(scope or SCOPES),
        allowed_models=models,
        quota_per_day=quota_per_day,
        requests_per_minute=requests_per_minute,
        networks=network or None,
        expires_at=None if expires_in is None else datetime.now(UTC) + expires_in,
    )
    pepper = Settings.load().key_pepper.get_secret_value()
    with changing() as connection:
        issued = issue_key(connection, find_account(connection, account).id, terms, pepper=pepper, actor=actor())
    _show_issued(issued, as_json=as_json)


@app.command("list")
def list_(
    account: Annotated[str | None, typer.Argument(help="The account's name or id; keys of all accounts without it.")] = None,
    as_json: Json = False,
) -> None:
    """List keys, newest first; never the keys themselves."""
    with reading() as connection:
        found = list_keys(connection, None if account is None else find_account(connection, account).id)
        names = {one.id: one.name for one in list_accounts(connection)}
    if as_json:
        show_json([_plain(key) for key in found])
        return
    columns = ("Id", "Key", "Name", "Account", "State", "Expires", "Made", "Last used")
    now = datetime.now(UTC)
    rows = [
        (key.id, key.shown, key.terms.name, names[key.account_id], key.state(now), key.terms.expires_at, key.created_at,
         key.last_used_at)
        for key in found
    ]  # fmt: skip
    show_table(columns, rows)


@app.command()
def rotate(
    key: KeyId,
    overlap: Annotated[timedelta, typer.Option(parser=duration, help="How long the old key works on.", metavar="SPAN")] = "24h",  # type: ignore[assignment]  # typer parses defaults too
    as_json: Json = False,
) -> None:
    """Create a key on the same terms; the old one works for the overlap and then ends."""
    pepper = Settings.load().key_pepper.get_secret_value()
    with changing() as connection:
        issued = rotate_key(connection, key, overlap=overlap, pepper=pepper, actor=actor())
    _show_issued(issued, as_json=as_json)


@app.command()
def revoke(key: KeyId, as_json: Json = False) -> None:
    """Stop a key for good, within a second, on every gateway."""
    with changing() as connection:
        revoked = revoke_key(connection, key, actor=actor())
    if as_json:
        show_json(_plain(revoked))
    else:
        say(f"{revoked.shown} is revoked.")


def _show_issued(issued: Issued, *, as_json: bool) -> None:
    """The key alone on stdout, so that a script can take it from there."""
    if as_json:
        show_json({**_plain(issued.key), "key": issued.token})
        return
    typer.echo(issued.token)
    say(f"Keep it now: it is not shown again. Its id is {issued.key.id}.")


def _plain(key: Key) -> dict[str, object]:
    terms = key.terms
    return {
        "id": key.id,
        "account_id": key.account_id,
        "shown": key.shown,
        "state": key.state(datetime.now(UTC)),
        "name": terms.name,
        "scopes": terms.scopes,
        "allowed_models": terms.allowed_models,
        "quota_per_day": terms.quota_per_day,
        "requests_per_minute": terms.requests_per_minute,
        "networks": terms.networks,
        "expires_at": terms.expires_at,
        "revoked_at": key.revoked_at,
        "rotated_from": key.rotated_from,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
    }
