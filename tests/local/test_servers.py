"""PostgreSQL and Valkey survive what happens to people's machines: kills, half-made folders, taken ports."""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.local.ground import Owner, reachable, unprivileged
from gateway.local.ports import free_port
from gateway.local.postgres import Postgres
from gateway.local.process import DidNotStart, Process
from gateway.local.valkey import Valkey
from tests.support.services import is_root, scratch


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch("servers") as folder:
        yield folder


def killed(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.end(first=signal.SIGKILL)


def test_postgres_starts_again_with_its_data_after_a_kill(folder: Path) -> None:
    postgres = Postgres(folder, free_port(), "secret")
    first = postgres.start()
    with psycopg.connect(postgres.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    killed(first)
    second = postgres.start()
    try:
        with psycopg.connect(postgres.url()) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (7,)
    finally:
        assert Postgres.stop(second)


def test_a_postgres_that_a_lost_run_left_behind_is_ended_before_its_files_are_used(folder: Path) -> None:
    lost = Postgres(folder, free_port(), "secret", durable=False).start()
    ours = Postgres(folder, free_port(), "secret", durable=False).start()
    try:
        assert not lost.is_alive
    finally:
        Postgres.stop(ours)


def test_a_half_initialised_data_folder_is_made_anew(folder: Path) -> None:
    unfinished = folder / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18")
    process = Postgres(folder, free_port(), "secret", durable=False).start()
    Postgres.stop(process)
    assert not unfinished.exists()


def test_postgres_is_private_to_its_user_and_needs_its_password(folder: Path) -> None:
    postgres = Postgres(folder, free_port(), "secret", durable=False)
    process = postgres.start()
    try:
        assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o700
        assert not list(folder.glob("password*"))
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(Postgres(folder, postgres.port, "guess").url())
    finally:
        Postgres.stop(process)


def test_a_wrong_kept_password_is_said_in_words(folder: Path) -> None:
    port = free_port()
    Postgres.stop(Postgres(folder, port, "secret", durable=False).start())
    with pytest.raises(DidNotStart, match="another password"):
        Postgres(folder, port, "lost", durable=False).start()


def test_a_taken_port_shows_what_the_server_printed(folder: Path) -> None:
    first = Valkey(folder / "a", free_port())
    process = first.start()
    try:
        with pytest.raises(DidNotStart, match="ended at once"):
            Valkey(folder / "b", first.port).start()
    finally:
        Valkey.stop(process)


def test_valkey_has_its_data_after_a_stop_and_its_second_server_never_shares_the_file(folder: Path) -> None:
    first = Valkey(folder, free_port(), password="secret")
    lost = first.start()
    with redis.Redis.from_url(first.url()) as client:
        client.set("kept", "7")
    second = Valkey(folder, free_port(), password="secret")
    process = second.start()
    try:
        assert not lost.is_alive
        with redis.Redis.from_url(second.url()) as client:
            assert client.get("kept") == b"7"
        with redis.Redis(port=second.port, retry=Retry(NoBackoff(), 0)) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
    finally:
        Valkey.stop(process)
    assert stat.S_IMODE((folder / "valkey.conf").stat().st_mode) == 0o600


@pytest.mark.skipif(not is_root(), reason="only root must give PostgreSQL's files to another user")
def test_as_root_a_folder_that_nobody_can_reach_is_left_as_it_is(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    ground = reachable(closed / "postgres", unprivileged())
    try:
        assert ground.parent == Path("/var/tmp")
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        assert unprivileged().can_reach(ground / "data")
    finally:
        ground.rmdir()


def test_a_plain_user_keeps_everything_in_the_folder_that_was_named(tmp_path: Path) -> None:
    assert reachable(tmp_path / "postgres", Owner()) == tmp_path / "postgres"
