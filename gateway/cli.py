"""The command line: `faregate <command>`."""

import errno
import importlib
import os
import pkgutil
import sys
from pathlib import Path

import typer
from rich.console import Console

from gateway import commands

app = typer.Typer(
    name="faregate", help="The inference platform a company runs on its own GPUs.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode="rich",
)  # fmt: skip


@app.command()
def serve() -> None:
    """Run one gateway until SIGTERM; it drains before it ends."""
    from gateway.app import serve as run
    from gateway.settings import Settings

    run(Settings.load())


@app.command()
def worker() -> None:
    """Run the worker that writes the ledger, until SIGTERM."""
    from gateway.settings import Settings
    from gateway.worker import run

    run(Settings.load())


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema and seed the plans; safe to run at any time, by several at once."""
    import migrations
    from billing.seed import seed
    from gateway.settings import Settings

    url = Settings.load().database_url.get_secret_value()
    migrations.upgrade(url)
    seed(url)
    Console(stderr=True).print(f"The database is at {migrations.head()}.")


def register_others(named: str = "") -> None:
    """The local run, and the groups of `gateway/commands`: only one where the line names it, as each costs its imports."""
    from gateway.local.commands import add_to

    add_to(app)
    nouns = {found.name for found in pkgutil.iter_modules(commands.__path__)}
    if named in {"up", "down", "status", "logs", "doctor", "migrate"}:
        return
    for noun in sorted(nouns & {named} or nouns):
        group = getattr(importlib.import_module(f"gateway.commands.{noun}"), "app", None)
        if isinstance(group, typer.Typer):
            app.add_typer(group, name=noun)


def use_local_run() -> None:
    """Where no database is named, the commands speak to the local run's."""
    if "DATABASE_URL" in os.environ or "DATABASE_URL_FILE" in os.environ or "FAREGATE_DATABASE_URL" in os.environ:
        return
    from gateway.local.home import Home

    for name, value in Home(Path(os.environ.get("FAREGATE_HOME", ".faregate"))).environment().items():
        os.environ.setdefault(name, value)


def plain_errors() -> tuple[type[Exception], ...]:
    """What a person can mend: shown as one line. Anything else is ours to mend and keeps its traceback."""
    from backends.fleet import InvalidFleet
    from backends.gpus import GpuUnknown
    from billing.conninfo import DatabaseUrlWrong
    from gateway.app import PortTaken
    from gateway.local.ground import NoGround
    from gateway.local.home import Busy, HomeUnfit
    from gateway.local.machine import MachineUnfit
    from gateway.local.process import DidNotStart
    from gateway.settings import SettingsWrong
    from models.catalogue import ModelUnknown
    from models.shapes import ShapeUnknown

    return (
        Busy, DatabaseUrlWrong, DidNotStart, GpuUnknown, HomeUnfit, InvalidFleet, MachineUnfit, ModelUnknown, NoGround,
        PortTaken, SettingsWrong, ShapeUnknown,
    )  # fmt: skip


def main() -> None:
    """Exit codes: 0 done, 1 refused or failed, 2 a command line that can't be understood, 130 interrupted."""
    named = next(iter(sys.argv[1:]), "")
    if named not in {"serve", "worker"}:
        register_others(named)
    try:
        if named not in {"serve", "worker", "up"}:
            use_local_run()
        app(prog_name="faregate")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        leave("the disk is full; make room and try again")
    except Exception as error:
        if not isinstance(error, plain_errors()):
            raise
        leave(str(error))


def leave(why: str) -> None:
    Console(stderr=True, highlight=False).print(f"faregate: {why}", markup=False, soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
