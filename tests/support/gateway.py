"""Whole gateways and workers as processes, with accounts and keys to call them by."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, insert, select

from billing.accounts import create_account
from billing.database import open_engine
from billing.plans import DEFAULT_PLANS, Envelope, Plan, row_from_plan
from billing.seed import seed
from billing.tables import plans, staged_jobs
from gateway.access.issue import Terms, issue_key, revoke_key

PEPPER = "test-pepper-test-pepper-test-pepper"
ROOT = Path(__file__).resolve().parents[2]
# Without limits but the one under test.
OPEN_ENVELOPE = Envelope(None, None, None, None, 8, 16)


@dataclass(slots=True)
class Running:
    """A gateway or worker process."""

    process: subprocess.Popen[bytes]
    port: int
    ops_port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def listens(self) -> bool:
        """Whether it has said where; the ports are then known."""
        for line in self.lines():
            if line["event"] == "serving":
                self.port, self.ops_port = line["port"], line["ops_port"]
        return self.port != 0 and _answers(self.port)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def metrics(self) -> str:
        return get(self.ops_port, "/metrics")[1].decode()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 20.0) -> int:
        """As an orchestrator does: SIGTERM, and wait for the drain."""
        self.process.terminate()
        return self.process.wait(seconds)


@dataclass(slots=True)
class Town:
    """One installation under test: its stores, its accounts, and the processes it runs."""

    database_url: str
    redis_url: str
    folder: Path
    fleet: str = ""
    processes: list[Running] = field(default_factory=list)
    customers: list["Customer"] = field(default_factory=list)
    standing: Running | None = None  # a gateway that several tests share; one with settings of its own is always new

    def __post_init__(self) -> None:
        seed(self.database_url)
        (self.folder / "fleet.toml").write_text(self.fleet)

    def plan(self, code: str, **changes: Any) -> Plan:
        """A plan of one's own, made from Pro; `envelope` is open unless given."""
        plan = replace(DEFAULT_PLANS[1], **{"code": code, "name": code.title(), "envelope": OPEN_ENVELOPE, **changes})
        with self.record() as connection:
            connection.execute(insert(plans).values(row_from_plan(plan)))
        return plan

    def key(self, plan: str = "enterprise", name: str = "", **terms: Any) -> "Customer":
        with self.record() as connection:
            account = create_account(
                connection, name=name or f"a{time.monotonic_ns()}", email="dev@example.com", plan_code=plan, actor="test"
            )
            issued = issue_key(connection, account.id, Terms(name="test", **terms), pepper=PEPPER, actor="test")
        self.customers.append(Customer(account.id, issued.key.id, issued.token))
        return self.customers[-1]

    def revoke(self, customer: "Customer") -> None:
        with self.record() as connection:
            revoke_key(connection, customer.key_id, actor="test")

    def settled_changes(self) -> None:
        """Wait until the worker has told Valkey of every change of an account (it must be running)."""

        def none_is_staged() -> bool:
            with self.record() as connection:
                return connection.scalar(select(func.count()).select_from(staged_jobs)) == 0

        wait_for(none_is_staged)

    @contextmanager
    def record(self) -> Iterator[Connection]:
        """A transaction on the installation's database."""
        engine = open_engine(self.database_url)
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("FAREGATE_")},
            "DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url, "FAREGATE_KEY_PEPPER": PEPPER,
            "FAREGATE_FLEET_FILE": str(self.folder / "fleet.toml"), "FAREGATE_PORT": "0",
            "FAREGATE_OPS_PORT": "0", "PYTHONWARNINGS": "error", **extra,
        }  # fmt: skip

    def gateway(self, **settings: Any) -> Running:
        """A gateway that answers. Settings by their short names: `drain_seconds=3`."""
        if self.standing is not None and not settings:
            return self.standing
        running = self._start("serve", settings)
        wait_for(lambda: running.process.poll() is not None or running.listens(), 20)
        assert running.process.poll() is None, running.log.read_text()
        return running

    def worker(self, **settings: Any) -> Running:
        return self._start("worker", settings)

    def _start(self, command: str, settings: Mapping[str, Any]) -> Running:
        log = self.folder / f"{command}-{len(self.processes)}.log"
        extra = {f"FAREGATE_{name.upper()}": str(value) for name, value in settings.items()}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "gateway.cli", command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                env=self.environment(extra), start_new_session=True,
            )  # fmt: skip
        running = Running(process, 0, 0, log)
        self.processes.append(running)
        return running


@dataclass(frozen=True, slots=True)
class Customer:
    account_id: UUID
    key_id: UUID
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "content-type": "application/json"}


BuildTown = Callable[[str], AbstractContextManager[Town]]


@contextmanager
def town(database_url: str, redis_url: str, folder: Path, fleet: str) -> Iterator[Town]:
    built = Town(database_url, redis_url, folder, fleet)
    try:
        yield built
    finally:
        for running in built.processes:
            running.kill()


def get(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_for(condition: Any, seconds: float = 5.0) -> None:
    """Raises AssertionError when `condition()` is not true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.02)


def _answers(port: int) -> bool:
    try:
        return get(port, "/healthz")[0] == 200
    except OSError:
        return False
