"""The servers that all other tests stand on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import redis

from tests.tidy.source import ROOT


def test_each_test_gets_a_database_of_its_own(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.info.server_version >= 180000
        connection.execute("CREATE TABLE mine (id int)")


def test_a_database_has_nothing_of_the_test_before(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT to_regclass('mine')").fetchone()
    assert row == (None,)


def test_valkey_keeps_an_append_only_file_and_evicts_nothing(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.dbsize() == 0


def test_a_killed_test_run_leaves_no_server_behind() -> None:
    use = "with running_valkey() as v: print(v.process.pid, v.valkey.folder, flush=True); time.sleep(60)"
    code = f"import time; from tests.support.services import running_valkey\n{use}"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        assert psutil.pid_exists(int(pid))
        os.kill(run.pid, signal.SIGKILL)
    deadline = time.monotonic() + 15
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
