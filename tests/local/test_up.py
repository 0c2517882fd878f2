"""`faregate up` and `down` as a person types them: the real PostgreSQL, Valkey, llama.cpp, gateway and worker."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest
from openai import OpenAI

from gateway.local.home import Home
from gateway.local.ports import LOOPBACK, free_port
from tests.support.gateway import wait_for
from tests.support.services import scratch
from tests.tidy.source import ROOT

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]


@dataclass
class Run:
    """One folder of a local run, and the commands on it."""

    home: Home
    port: int
    ops_port: int

    def faregate(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("FAREGATE_", "DATABASE_URL", "REDIS_URL"))
        }
        env = clean | {"FAREGATE_HOME": str(self.home.folder)} | more
        command = [sys.executable, "-m", "gateway.cli", *words]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=150)

    def up(self, **more: str) -> subprocess.CompletedProcess[str]:
        return self.faregate("up", "--port", str(self.port), "--ops-port", str(self.ops_port), "--json", **more)

    def pids(self) -> dict[str, int]:
        return {service.name: service.pid for service in self.home.services() if service.process.is_alive}


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with scratch("up") as folder:
        run = Run(Home(folder / "home"), free_port(), free_port())
        yield run
        run.faregate("down")


@pytest.fixture(scope="module")
def first(run: Run) -> dict[str, str]:
    done = run.up()
    assert done.returncode == 0, done.stderr
    facts: dict[str, str] = json.loads(done.stdout)
    return facts


def posted(run: Run) -> int:
    with psycopg.connect(run.home.environment()["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT count(*) FROM requests WHERE verdict = 'posted'").fetchone()
    assert row is not None
    return int(row[0])


def test_from_nothing_to_a_streamed_answer_in_the_ledger(run: Run, first: dict[str, str]) -> None:
    assert first["answer"]
    assert len(first["admin_password"]) >= 20
    before = posted(run)
    client = OpenAI(base_url=first["base_url"], api_key=first["api_key"], max_retries=0)
    stream = client.chat.completions.create(
        model=first["model"], messages=[{"role": "user", "content": "Count to three."}], stream=True, max_tokens=16
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text.strip()
    deadline = time.monotonic() + 10
    while posted(run) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert posted(run) == before + 1


def test_status_and_doctor_find_everything_well(run: Run, first: dict[str, str]) -> None:
    done = run.faregate("status", "--json")
    assert done.returncode == 0
    assert {line["name"]: line["state"] for line in json.loads(done.stdout)} == dict.fromkeys(
        ("postgres", "valkey", "llamacpp", "worker", "gateway"), "running"
    )
    examined = run.faregate("doctor", "--json")
    assert [finding for finding in json.loads(examined.stdout) if not finding["ok"]] == []
    assert examined.returncode == 0


def test_logs_hold_no_key_and_no_prompt(run: Run, first: dict[str, str]) -> None:
    written = run.faregate("logs", "-n", "1000").stdout
    assert "serving" in written
    assert first["api_key"] not in written
    assert "short sentence" not in written


def test_the_commands_of_the_readme_work_as_they_stand_there(run: Run, first: dict[str, str]) -> None:
    lines = [line.split() for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(".venv/bin/faregate ")]
    assert len(lines) >= 6
    for words in lines:
        done = run.faregate(*words[1:])
        assert done.returncode == 0, (words, done.stderr)


def test_up_again_changes_nothing_that_runs(run: Run, first: dict[str, str]) -> None:
    before = run.pids()
    done = run.up()
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert run.pids() == before
    assert again["api_key"] == first["api_key"]
    assert again["admin_password"] is None


def test_a_wrong_setting_stopped_a_gateway_that_ran_well(run: Run, first: dict[str, str]) -> None:
    before = run.pids()
    done = run.up(FAREGATE_LOG_LEVEL="loud")
    assert done.returncode == 1
    assert "faregate: FAREGATE_LOG_LEVEL" in done.stderr
    assert run.pids() == before


def test_after_everything_was_killed_up_is_back_with_its_data(run: Run, first: dict[str, str]) -> None:
    before = posted(run)
    for pid in run.pids().values():
        os.kill(pid, signal.SIGKILL)
    done = run.up()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["api_key"] == first["api_key"]
    assert posted(run) == before + 1


def test_a_taken_port_is_one_line_and_leaves_nothing_running(run: Run) -> None:
    with scratch("other") as folder, socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        other = Run(Home(folder / "home"), taken.getsockname()[1], free_port())
        done = other.up()
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert f"port {other.port} for the gateway is taken" in done.stderr
        assert other.pids() == {}


def test_ctrl_c_ends_what_was_started(run: Run) -> None:
    with scratch("interrupted") as folder:
        home = Home(folder / "home")
        command = [sys.executable, "-m", "gateway.cli", "up", "--port", str(free_port()), "--ops-port", str(free_port())]
        env = os.environ | {"FAREGATE_HOME": str(home.folder)}
        # A shell's background job is started with this signal ignored, and would hand that on.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        with subprocess.Popen(
            command, cwd=ROOT, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=heard
        ) as starting:
            deadline = time.monotonic() + 30
            while home.find("valkey") is None and time.monotonic() < deadline:
                time.sleep(0.02)
            started = home.services()
            starting.send_signal(signal.SIGINT)
            starting.communicate(timeout=60)
        assert starting.returncode == 130
        assert len(started) >= 2
        assert not any(service.process.is_alive for service in started)


def test_a_url_of_ones_own_is_used_and_nothing_started_in_its_place(run: Run, valkey_url: str, database_url: str) -> None:
    with scratch("own") as folder:
        other = Run(Home(folder / "home"), free_port(), free_port())
        done = other.up(REDIS_URL=valkey_url, DATABASE_URL=database_url)
        try:
            assert done.returncode == 0, done.stderr
            assert set(other.pids()) == {"llamacpp", "worker", "gateway"}
            assert other.home.environment()["REDIS_URL"] == valkey_url
        finally:
            other.faregate("down")


def test_with_a_stand_in_of_stripe_a_plan_is_bought_and_in_force(run: Run, first: dict[str, str]) -> None:
    done = run.faregate("up", "--port", str(run.port), "--ops-port", str(run.ops_port), "--json", "--billing", "demo")
    assert done.returncode == 0, done.stderr
    stand_in = json.loads(done.stdout)["stripe_url"]
    assert "stripe" in run.pids()
    page = run.faregate("subscriptions", "checkout", "demo", "pro").stdout.strip()
    assert page.startswith(f"{stand_in}/c/pay/")
    fields = {"email": "a@b.test", "number": "4242 4242 4242 4242"}
    assert httpx2.post(page, data=fields, timeout=10).headers["location"] == f"http://127.0.0.1:{run.port}/docs"

    def bought() -> bool:
        found = json.loads(run.faregate("subscriptions", "show", "demo", "--json").stdout)
        return [(one["plan_code"], one["status"]) for one in found] == [("pro", "active")]

    wait_for(bought, 15)
    again = run.up()  # it is not asked for any more
    assert again.returncode == 0, again.stderr
    assert "stripe" not in run.pids()
    assert "FAREGATE_STRIPE_KEY" not in run.home.environment()


def test_down_ends_all_of_ours_and_only_ours(run: Run, first: dict[str, str]) -> None:
    pids = run.pids()
    assert len(pids) == 5
    done = run.faregate("down")
    assert done.returncode == 0, done.stderr
    assert "was killed" not in done.stderr
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids.values())
    assert run.faregate("status").returncode == 1
    assert Path(run.home.folder / "postgres").exists()
