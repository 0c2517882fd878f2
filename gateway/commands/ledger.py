"""`faregate ledger`: prove that the record adds up, mend what is derived, and see what the worker is at."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import psycopg
import typer
from redis.exceptions import RedisError

from billing.conninfo import conninfo
from billing.proofs import Kept, Proof, keep, latest
from gateway.commands.record import WAY_OUT, refusals, say
from gateway.commands.show import Json, show_json, show_table
from gateway.commands.totals import recent, totals
from gateway.reconciliation import prove
from gateway.settings import Settings
from gateway.stripe_proof import compare_with_stripe
from gateway.worker import redis_client
from gateway.worker_metrics import STATUS_KEY

app = typer.Typer(no_args_is_help=True, help="The ledger and its worker.")
app.command()(totals)
app.command()(recent)


@app.command("reconcile")
def reconcile_(
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="One day (UTC); all of them without it.")] = None,
    is_repairing: Annotated[
        bool, typer.Option("--repair", help="Mend what is derived: roll-ups and live counters. Rows stay as they are.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add the ledger up again and compare it with everything that follows from it. Exit code 1 when a difference is left."""
    with refusals():
        proof = asyncio.run(_prove(Settings.load(), day, is_repairing=is_repairing))
    if as_json:
        show_json(proof)
    else:
        _tell(proof)
    if proof.left:
        raise typer.Exit(1)


@app.command()
def status(as_json: Json = False) -> None:
    """Show what the worker has done, what waits in the streams, and what the last proof found. Exit code 1 without a worker."""
    settings = Settings.load()
    with refusals():
        facts = asyncio.run(_status(settings))
    proved, is_known = asyncio.run(_latest(settings))
    if as_json and facts:
        show_json(facts | {"reconciled": proved})
    elif facts:
        show_table(
            ("What", "Value"),
            [*(_readable(name, value) for name, value in facts.items()), ("reconciled", _said(proved, is_known=is_known))],
        )
    if proved is not None and proved.findings and not as_json:
        show_table(("What", "Account", "Day", "Found"), [_row(one) for one in proved.findings])
    if not facts:
        say("No worker has reported for a minute. Start one with `faregate worker`.")
        raise typer.Exit(1)


def _readable(name: str, value: str | int) -> tuple[str, object]:
    """Of a moment, when it was; of anything else, what it is."""
    if name == "at_ms":
        return "reported", f"{datetime.fromtimestamp(int(value) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return name.replace("_", " "), value


def _said(proved: Kept | None, *, is_known: bool) -> str:
    if proved is None:
        return "never" if is_known else "PostgreSQL can't be asked"
    left = proved.differences - proved.repaired
    return f"{proved.began_at:%Y-%m-%d %H:%M} UTC, {_count(left, 'difference')} in {_count(proved.rows, 'row')}"


async def _prove(settings: Settings, day: datetime | None, *, is_repairing: bool) -> Proof:
    url = conninfo(settings.database_url.get_secret_value())
    now = datetime.now(UTC)
    async with (
        redis_client(settings) as valkey,
        await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5) as connection,
    ):
        of = None if day is None else day.date()
        proof = await prove(connection, valkey, now, shards=settings.shards, day=of, is_repairing=is_repairing)
        if day is None:
            proof = proof.and_found(await compare_with_stripe(settings, now))
            await keep(connection, proof)
        return proof


async def _status(settings: Settings) -> dict[str, str | int]:
    async with redis_client(settings) as valkey:
        try:
            facts: Any = await valkey.hgetall(STATUS_KEY)
        except (RedisError, OSError) as outage:
            say(f"Valkey can't be reached: {str(outage).rstrip('.')}. {WAY_OUT}")
            raise typer.Exit(1) from outage
    plain = {name.decode(): value.decode() for name, value in facts.items()}
    return {name: int(value) if value.isdecimal() else value for name, value in plain.items()}


async def _latest(settings: Settings) -> tuple[Kept | None, bool]:
    """And whether that could be asked: without PostgreSQL the rest matters all the more."""
    url = conninfo(settings.database_url.get_secret_value())
    try:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5) as connection:
            return await latest(connection), True
    except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
        return None, False


def _tell(proof: Proof) -> None:
    if proof.findings:
        show_table(("What", "Account", "Day", "Found"), [_row(asdict(one)) for one in proof.findings])
    added = f"{_count(proof.rows, 'row')} of {_count(len(proof.days), 'day')} were added up"
    compared = f"{_count(proof.counters, 'live counter')} compared"
    differ = _count(len(proof.findings), "difference")
    mended = len(proof.findings) - proof.left
    done = f", {mended:,} mended" if mended else ""
    hint = " `--repair` mends roll-ups and counters." if proof.left and not mended else ""
    say(f"{added}, {compared}: {differ}{done}.{hint}")


def _row(found: Mapping[str, Any]) -> tuple[object, ...]:
    kind = f"{found['kind']}, mended" if found["is_repaired"] else found["kind"]
    return kind, found["name"] or found["account"], found["day"], found["what"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
