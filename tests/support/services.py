"""PostgreSQL and Valkey of a test session: started on free ports, gone with it."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import sql

from gateway.local.ground import unprivileged
from gateway.local.ports import free_port
from gateway.local.postgres import Postgres
from gateway.local.process import Process
from gateway.local.valkey import Valkey

TEMPLATE = "migrated"
GUARD = """
read -r nothing
for pid in $(head -qn 1 "$0"/valkey.pid "$0"/data/postmaster.pid 2>/dev/null); do kill -INT "$pid"; done
sleep 2
rm -rf "$0"
"""


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A short-lived folder that PostgreSQL's user can pass through; only the owner may list it."""
    folder = Path(tempfile.mkdtemp(prefix=f"faregate-{name}-"))
    folder.chmod(0o711)
    # A guard of the folder: when we are killed, its standard input ends, and it ends the servers that run there.
    guard = subprocess.Popen(["sh", "-c", GUARD, str(folder)], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield folder
    finally:
        guard.kill()
        guard.communicate()
        shutil.rmtree(folder)


class PostgresServer:
    """One server a test process; every test gets a database cloned from the migrated template."""

    def __init__(self, postgres: Postgres, process: Process) -> None:
        self.postgres = postgres
        self.process = process

    def url(self, database: str) -> str:
        return self.postgres.url(database)

    def migrate_template(self) -> None:
        self.create(TEMPLATE, template="template0")
        upgrade = getattr(import_module("migrations"), "upgrade", None)
        if upgrade is not None:
            upgrade(self.url(TEMPLATE))

    def create(self, name: str, template: str = TEMPLATE) -> str:
        # FILE_COPY is a few files copied instead of WAL for every page; right for small templates without fsync.
        self._run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(sql.Identifier(name), sql.Identifier(template))
        )
        return self.url(name)

    def drop(self, name: str) -> None:
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def database(self) -> Iterator[str]:
        """A migrated database of one's own; yields its URL."""
        name = f"t{uuid4().hex}"
        self.create(name)
        try:
            yield self.url(name)
        finally:
            self.drop(name)

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    with scratch("pg") as folder:
        postgres = Postgres(folder, free_port(), "test", durable=False)
        process = postgres.start()
        try:
            server = PostgresServer(postgres, process)
            server.migrate_template()
            yield server
        finally:
            Postgres.stop(process)


class ValkeyServer:
    """A server whose process a test may kill and start again on the same port and files."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.process = valkey.start()

    @property
    def url(self) -> str:
        return self.valkey.url()

    def start(self) -> None:
        self.process = self.valkey.start()

    def stop(self) -> None:
        Valkey.stop(self.process)


@contextmanager
def running_valkey(program: Path | None = None) -> Iterator[ValkeyServer]:
    """A Valkey of one's own; `program` runs another server (redis-server) on the same settings."""
    with scratch("vk") as folder:
        server = ValkeyServer(Valkey(folder, free_port(), program=program))
        try:
            yield server
        finally:
            server.stop()


def redis_program() -> Path | None:
    """Redis itself, where the machine has one."""
    found = shutil.which("redis-server")
    return Path(found) if found else None


def is_root() -> bool:
    return unprivileged().uid is not None
