"""`make up BILLING=demo`: a server that stands in for Stripe, out of this checkout's tests, and the plans on sale there."""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select, update

from billing.changes import account_changed
from billing.database import open_engine
from billing.tables import customers, subscriptions
from gateway.local.ask import status_of
from gateway.local.machine import MachineUnfit
from gateway.local.newcomers import ACTOR
from gateway.local.ports import LOOPBACK
from gateway.local.process import DidNotStart, Process, clean_environment, last_lines, pause, spawn

SOURCE = Path(__file__).parents[2]
KEY = "sk_test_standin"
START_SECONDS = 20.0


@dataclass(frozen=True)
class StandIn:
    """It remembers nothing of an earlier run; its events go to the gateway's port."""

    folder: Path
    port: int
    gateway_port: int
    secret: str

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "stripe.log"

    @property
    def signing_secret(self) -> str:
        return f"whsec_{self.secret}"

    def settings(self, signing_file: Path) -> dict[str, str]:
        """What gateway, worker and commands need to know of it."""
        return {
            "FAREGATE_STRIPE_KEY": KEY,
            "FAREGATE_STRIPE_API_BASE": self.url,
            "FAREGATE_STRIPE_WEBHOOK_SECRET_FILE": str(signing_file),
        }

    def launch(self) -> Process:
        hook = f"http://{LOOPBACK}:{self.gateway_port}/webhooks/stripe"
        command = [sys.executable, "-m", "tests.support.stripe", "--port", str(self.port), "--seed", str(time.time_ns())]
        command += ["--endpoint", hook, "--secret", self.signing_secret]
        return spawn(command, log=self.log, folder=SOURCE, env=clean_environment())

    def wait(self, process: Process) -> None:
        """Raises: DidNotStart."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.is_alive:
            if status_of(self.port, "/_clock") == 200:
                return
            pause(0.05)
        raise DidNotStart(f"Stripe's stand-in did not start; its last lines:\n{last_lines(self.log)}")


def check_billing(environment: Mapping[str, str]) -> None:
    """Raises: MachineUnfit."""
    if environment.get("FAREGATE_STRIPE_KEY", KEY) != KEY or "FAREGATE_STRIPE_KEY_FILE" in environment:
        raise MachineUnfit("BILLING=demo brings a Stripe of its own; unset FAREGATE_STRIPE_KEY, or leave BILLING out")
    if not (SOURCE / "tests" / "support" / "stripe" / "__main__.py").exists():
        raise MachineUnfit("BILLING=demo needs the source: run `make up BILLING=demo` in a clone of the project")


def open_sale(database_url: str, environment: Mapping[str, str], *, is_new: bool) -> None:
    """Raises: DidNotStart."""
    if is_new:
        _forget_purchases(database_url)
    command = [sys.executable, "-m", "gateway.cli", "stripe", "sync"]
    env = {**clean_environment(), **environment}
    done = subprocess.run(command, cwd=SOURCE, env=env, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise DidNotStart(f"the plans could not be put on sale: {done.stderr.strip()}")


def _forget_purchases(database_url: str) -> None:
    """Those of an earlier stand-in are gone with it."""
    engine = open_engine(database_url)
    try:
        with engine.begin() as connection:
            alive = subscriptions.c.ended_at.is_(None)
            for which, account in connection.execute(select(subscriptions.c.id, subscriptions.c.account_id).where(alive)).all():
                account_changed(connection, account, "subscription.forget", actor=ACTOR, details={"subscription": which})
            over = {"status": "canceled", "ended_at": subscriptions.c.fetched_at}
            connection.execute(update(subscriptions).where(alive).values(over))
            connection.execute(customers.delete())
    finally:
        engine.dispose()
