"""`faregate ledger`: prove that the roll-ups are what the rows add up to, and see what the worker is at."""

import asyncio
from datetime import UTC, date, datetime
from typing import Annotated, Any

import psycopg
import typer
from redis.exceptions import RedisError

from billing.database import conninfo
from billing.reconcile import Reconciled, fix, reconcile
from gateway.commands.record import WAY_OUT, refusals, say
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from gateway.worker import STATUS_KEY, redis_client

app = typer.Typer(no_args_is_help=True, help="The ledger and its worker.")


@app.command("reconcile")
def reconcile_(
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="One day (UTC); all of them without it.")] = None,
    fix_them: Annotated[bool, typer.Option("--fix", help="Rewrite the roll-ups of days that differ.")] = False,
    as_json: Json = False,
) -> None:
    """Add the ledger up again and compare. Exit code 1 when something differs and was not fixed."""
    with refusals():
        found = asyncio.run(_reconcile(Settings.load(), None if day is None else day.date(), fix_them=fix_them))
    is_fixed = bool(found.differences) and fix_them
    if as_json:
        show_json({"days": found.days, "rows": found.rows, "differences": found.differences, "fixed": is_fixed})
    else:
        _tell(found, is_fixed=is_fixed)
    if found.differences and not is_fixed:
        raise typer.Exit(1)


@app.command()
def status(as_json: Json = False) -> None:
    """Show what the worker has done and what waits in the streams. Exit code 1 when no worker runs."""
    with refusals():
        facts = asyncio.run(_status(Settings.load()))
    if not facts:
        say("No worker has reported for a minute. Start one with `faregate worker`.")
        raise typer.Exit(1)
    if as_json:
        show_json(facts)
    else:
        show_table(("What", "Value"), [_readable(name, value) for name, value in facts.items()])


def _readable(name: str, value: str | int) -> tuple[str, object]:
    """Of a moment, when it was; of anything else, what it is."""
    if name == "at_ms":
        return "reported", f"{datetime.fromtimestamp(int(value) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return name.replace("_", " "), value


async def _reconcile(settings: Settings, day: date | None, *, fix_them: bool) -> Reconciled:
    url = conninfo(settings.database_url.get_secret_value())
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5) as connection:
        found = await reconcile(connection, day)
        if found.differences and fix_them:
            await fix(connection, found)
        return found


async def _status(settings: Settings) -> dict[str, str | int]:
    async with redis_client(settings) as valkey:
        try:
            facts: Any = await valkey.hgetall(STATUS_KEY)
        except (RedisError, OSError) as outage:
            say(f"Valkey can't be reached: {str(outage).rstrip('.')}. {WAY_OUT}")
            raise typer.Exit(1) from outage
    plain = {name.decode(): value.decode() for name, value in facts.items()}
    return {name: int(value) if value.isdecimal() else value for name, value in plain.items()}


def _tell(found: Reconciled, *, is_fixed: bool) -> None:
    if not found.differences:
        say(f"{_count(found.rows, 'row')} of {_count(len(found.days), 'day')} add up to their roll-ups.")
        return
    columns = ("Day", "Account", "Key", "Model", "What", "Rolled up", "Rows say")
    rows = [(one.day, one.account_id, one.key_id, one.model, one.what, one.rolled_up, one.summed) for one in found.differences]
    show_table(columns, rows)
    done = "The roll-ups were rewritten." if is_fixed else "`--fix` rewrites the roll-ups."
    differ = "1 sum differs" if len(found.differences) == 1 else f"{len(found.differences):,} sums differ"
    say(f"{differ}, of {_count(found.rows, 'row')} in {_count(len(found.days), 'day')}. {done}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
