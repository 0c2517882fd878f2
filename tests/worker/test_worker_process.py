"""The worker as a process: it ends cleanly, dies at the worst moments, and outlives both of its servers."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from sqlalchemy import update

import migrations
from billing.accounts import create_account, suspend_account
from billing.database import open_engine
from billing.seed import seed
from billing.tables import accounts
from gateway.clock import Clock
from gateway.limits.shard import Shard, shard_of
from tests.billing.events import event, fields
from tests.support.services import running_postgres, running_valkey
from tests.worker.running import worker


def until(holds: Callable[[], bool], log: Path, seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.02)


def settle(valkey: "redis.Redis", count: int, shard: int = 5) -> None:
    for _ in range(count):
        valkey.xadd(f"{{s{shard:02d}}}:ev", fields(event(Clock().now_ms())))


def posted(database_url: str) -> tuple[int, int]:
    """Rows, and what the roll-up says of them."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM requests), (SELECT coalesce(sum(posted), 0)::int FROM usage_daily)"
        ).fetchone()
    assert row is not None
    return row


@pytest.fixture
def valkey(valkey_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(valkey_url) as client:
        yield client


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def test_it_records_publishes_and_ends_cleanly(database_url: str, valkey_url: str, valkey: "redis.Redis", log: Path) -> None:
    settle(valkey, 3)
    with worker(database_url, valkey_url, log) as process:
        until(lambda: posted(database_url) == (3, 3), log)
        until(lambda: valkey.hget("faregate:worker", "inserted") == b"3", log)
        settle(valkey, 2)
        process.terminate()
        assert process.wait(timeout=20) == 0, log.read_text()
    assert posted(database_url) == (5, 5)
    assert b"worker_stopped" in log.read_bytes()


@pytest.mark.parametrize("point", ["worker:after_insert", "worker:after_commit"])
def test_killed_at_the_worst_moment_it_records_each_event_once(
    point: str, database_url: str, valkey_url: str, valkey: "redis.Redis", log: Path
) -> None:
    settle(valkey, 4)
    with worker(database_url, valkey_url, log, crash_at=point) as process:
        assert process.wait(timeout=20) == 137, log.read_text()
    assert posted(database_url) == ((0, 0) if point == "worker:after_insert" else (4, 4))
    with worker(database_url, valkey_url, log):
        settle(valkey, 1)
        until(lambda: posted(database_url) == (5, 5), log)
        newest: Any = valkey.xrevrange("{s05}:ev", count=1)
        until(lambda: valkey.get("{s05}:wm") == b" " + newest[0][0], log)


def test_a_change_of_an_account_reaches_valkey(database_url: str, valkey_url: str, valkey: "redis.Redis", log: Path) -> None:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        account = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="test")
        connection.execute(update(accounts).values(version=6))
    counter = Shard(shard_of(str(account.id)), "").account(str(account.id))
    with worker(database_url, valkey_url, log):
        until(lambda: valkey.exists("faregate:worker") == 1, log)
        began = time.monotonic()
        with engine.begin() as connection:
            suspend_account(connection, account.id, actor="test")
        until(lambda: valkey.hget(counter, "v") == b"7", log)
        assert time.monotonic() - began < 1.0
        until(lambda: _staged(database_url) == 0, log)
    engine.dispose()


def test_a_worker_outlives_both_of_its_servers(log: Path) -> None:
    with running_postgres() as postgres, running_valkey() as server, redis.Redis.from_url(server.url) as valkey:
        url = postgres.url("migrated")
        migrations.upgrade(url)
        with worker(url, server.url, log) as process:
            settle(valkey, 2)
            until(lambda: posted(url) == (2, 2), log)
            os.kill(postgres.process.pid, signal.SIGSTOP)
            settle(valkey, 2)
            time.sleep(0.3)
            os.kill(postgres.process.pid, signal.SIGCONT)
            until(lambda: posted(url) == (4, 4), log)
            _end_sessions(url)
            settle(valkey, 2)
            until(lambda: posted(url) == (6, 6), log)
            server.stop()
            time.sleep(0.3)
            server.start()
            settle(redis.Redis.from_url(server.url), 2)
            until(lambda: posted(url) == (8, 8), log)
            assert process.poll() is None
    assert b"worker_waits" in log.read_bytes()


def _staged(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*)::int FROM staged_jobs").fetchone()
    assert row is not None
    return int(row[0])


def _end_sessions(url: str) -> None:
    """What a restart of PostgreSQL does to everyone connected."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        )
