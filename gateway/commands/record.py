"""How a command reads and changes the record: one transaction, then the push into Valkey; refusals are one line and code 1."""

import asyncio
import getpass
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import typer
from redis.exceptions import RedisError
from rich.console import Console
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError, ProgrammingError

from billing.accounts import AccountNameTaken, AccountWrong
from billing.conninfo import DatabaseUrlWrong, conninfo
from billing.database import open_engine
from billing.plan_versions import PlanLoses, PlanUnknown, PlanWrong
from billing.savings import MoreThanTheQuota
from billing.unknown import AccountUnknown
from gateway.access.issue import KeyEnded, KeyNotThere, KeyWrong
from gateway.bumps import push_staged
from gateway.settings import Settings
from gateway.worker import redis_client
from models.catalogue import ModelUnknown

_REFUSALS = (
    AccountNameTaken,
    AccountUnknown,
    AccountWrong,
    DatabaseUrlWrong,
    KeyEnded,
    KeyNotThere,
    KeyWrong,
    ModelUnknown,
    MoreThanTheQuota,
    PlanLoses,
    PlanUnknown,
    PlanWrong,
)

WAY_OUT = "`faregate doctor` says what is wrong; `make up` starts the servers of a local run."


@contextmanager
def reading() -> Iterator[Connection]:
    """A transaction that changes nothing."""
    with refusals(), _transaction(Settings.load()) as connection:
        yield connection


@contextmanager
def changing() -> Iterator[Connection]:
    """A transaction; after its commit, what it staged is in Valkey at once, if Valkey is there, else by the worker."""
    settings = Settings.load()
    with refusals(), _transaction(settings) as connection:
        yield connection
    push_changes(settings)


def push_changes(settings: Settings) -> None:
    """What changes staged is in Valkey at once, if Valkey is there, else by the worker."""
    try:
        asyncio.run(_push(settings))
    except (RedisError, OSError, psycopg.OperationalError):
        say("Done. Valkey can't be reached from here; the worker makes the change known as soon as it can.")


@contextmanager
def refusals() -> Iterator[None]:
    """A refusal of the domain, or a database that can't be used, is one line on stderr and exit code 1."""
    try:
        yield
    except _REFUSALS as refusal:
        say(str(refusal))
    except (OperationalError, psycopg.OperationalError) as outage:
        say(f"PostgreSQL can't be reached: {str(getattr(outage, 'orig', None) or outage).strip().splitlines()[0]}. {WAY_OUT}")
    except (ProgrammingError, psycopg.ProgrammingError) as error:
        if not isinstance(getattr(error, "orig", error), psycopg.errors.UndefinedTable):
            raise
        say("The database has no tables yet. Run `faregate migrate`.")
    else:
        return
    raise typer.Exit(1)


@contextmanager
def refused_by(*errors: type[Exception]) -> Iterator[None]:
    """A command's own refusals: one line and code 1, as well."""
    try:
        yield
    except errors as refusal:
        say(str(refusal))
        raise typer.Exit(1) from None


def say(line: str) -> None:
    Console(stderr=True, highlight=False).print(f"faregate: {line}", markup=False, soft_wrap=True)


def actor() -> str:
    """Who types, as the audit entry names them."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):  # a container's user without a name
        return "cli"


@contextmanager
def _transaction(settings: Settings) -> Iterator[Connection]:
    engine = open_engine(settings.database_url.get_secret_value())
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


async def _push(settings: Settings) -> None:
    url = conninfo(settings.database_url.get_secret_value())
    async with (
        redis_client(settings) as valkey,
        await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5) as connection,
    ):
        await push_staged(connection, valkey, settings.shards)
