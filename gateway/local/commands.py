"""The commands of a local run; each imports what it needs itself, so that `faregate status` answers at once."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gateway.local.home import Home

Folder = Annotated[Path, typer.Option("--home", envvar="FAREGATE_HOME", help="Folder of the data, logs and secrets.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
HOME = Path(".faregate")


class Billing(StrEnum):
    """How a local run sells; without it as FAREGATE_STRIPE_KEY says."""

    DEMO = "demo"


# Of a table that goes into a file or a pipe: wide enough that no path is folded.
WIDTH = 200


def up(
    port: Annotated[int, typer.Option(envvar="FAREGATE_PORT", min=1, max=65535, help="Where clients connect.")] = 8080,
    ops_port: Annotated[int, typer.Option(envvar="FAREGATE_OPS_PORT", min=1, max=65535, help="Health and metrics.")] = 8081,
    *,
    database_url: Annotated[
        str | None, typer.Option(envvar="DATABASE_URL", show_envvar=True, help="A PostgreSQL of yours.")
    ] = None,
    redis_url: Annotated[str | None, typer.Option(envvar="REDIS_URL", help="A Valkey or Redis of yours.")] = None,
    fleet_file: Annotated[Path | None, typer.Option(envvar="FAREGATE_FLEET_FILE", help="Engines of yours.")] = None,
    billing: Annotated[
        Billing | None, typer.Option(help="demo: a server beside it stands in for Stripe, to try out buying.")
    ] = None,
    home: Folder = HOME,
    as_json: Json = False,
) -> None:
    """Start everything on this machine, and prove it with one real completion."""
    from gateway.local.screen import Screen
    from gateway.local.up import up as start_all
    from gateway.local.wanted import Wanted
    from gateway.local.welcome import print_welcome

    wanted = Wanted(port, ops_port, database_url, redis_url, fleet_file, is_billing_shown=billing is not None)
    running = start_all(Home(home.absolute()), wanted, Screen())
    print_welcome(running, as_json=as_json)


def down(home: Folder = HOME) -> None:
    """Stop everything that `up` started; data stays."""
    from gateway.local.screen import Screen
    from gateway.local.stopping import down as stop_all

    screen = Screen()
    if not stop_all(Home(home.absolute()), screen):
        screen.console.print("Nothing runs.")


def status(home: Folder = HOME, as_json_: Json = False) -> None:
    """What runs. Exit code 1 when something that should run doesn't, or nothing does."""
    from gateway.local.status import as_json, as_table, lines

    found = lines(Home(home.absolute()))
    if as_json_:
        print(json.dumps(as_json(found)))
    elif found:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(as_table(found))
    else:
        Console().print("Nothing runs; `make up` starts it.")
    if not found or any(line.state != "running" for line in found):
        raise typer.Exit(1)


def logs(
    service: Annotated[
        list[str] | None, typer.Argument(help="gateway, worker, llamacpp, stripe, valkey, postgres; all without it.")
    ] = None,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="Lines of each to begin with.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    home: Folder = HOME,
) -> None:
    """What the services wrote."""
    from gateway.local.logs import follow as follow_logs
    from gateway.local.logs import found, show
    from gateway.local.stopping import ORDER

    if unknown := set(service or ()) - set(ORDER):
        raise typer.BadParameter(f"there is no service {', '.join(sorted(unknown))}; the services are {', '.join(ORDER)}")
    known = found(Home(home.absolute()), service or tuple(reversed(ORDER)))
    if not known:
        typer.echo("faregate: nothing has been logged yet; `make up` starts everything", err=True)
        raise typer.Exit(1)
    show(known, count, typer.echo)
    if follow:
        try:
            follow_logs(known, typer.echo)
        except KeyboardInterrupt:
            return


def doctor(home: Folder = HOME, as_json_: Json = False) -> None:
    """What is wrong, and what to do about it. Exit code 1 when something is."""
    from gateway.local.doctor import examine

    findings = examine(Home(home.absolute()))
    if as_json_:
        print(json.dumps([{"check": finding.check, "ok": finding.ok, "detail": finding.detail} for finding in findings]))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            console.print(f"{'[green]✓[/]' if finding.ok else '[red]✗[/]'} {finding.check:<10}", end="  ")
            console.print(finding.detail, markup=False)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    for command in (up, down, status, logs, doctor):
        app.command()(command)
