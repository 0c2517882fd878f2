"""Our own two programs, gateway and worker, as detached processes of a local run."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.local.ask import status_of
from gateway.local.process import DidNotStart, Process, last_lines, last_words, pause, reap, spawn

START_SECONDS = 30.0
# A worker that is going to fail at start (a wrong URL, a schema it doesn't know) has done so by then.
WORKER_PROOF_SECONDS = 0.7


@dataclass(frozen=True)
class Gateway:
    """`faregate serve`; ready when its operators' port says so."""

    folder: Path
    environment: Mapping[str, str]
    port: int
    ops_port: int

    @property
    def log(self) -> Path:
        return self.folder / "gateway.log"

    def launch(self) -> Process:
        return _launch("serve", self.log, self.environment)

    def wait(self, process: Process) -> None:
        """Raises: DidNotStart."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            _still_runs("the gateway", process, self.log)
            if status_of(self.ops_port, "/readyz") == 200:
                return
            pause(0.05)
        raise DidNotStart(f"the gateway was not ready within {START_SECONDS:.0f} s; its last lines:\n{last_lines(self.log)}")


@dataclass(frozen=True)
class Worker:
    """`faregate worker`; it listens nowhere, so it has started when it has not ended at once."""

    folder: Path
    environment: Mapping[str, str]
    port: int = 0

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"

    def launch(self) -> Process:
        return _launch("worker", self.log, self.environment)

    def wait(self, process: Process) -> None:
        """Raises: DidNotStart."""
        deadline = time.monotonic() + WORKER_PROOF_SECONDS
        while time.monotonic() < deadline:
            _still_runs("the worker", process, self.log)
            pause(0.05)


def _launch(command: str, log: Path, environment: Mapping[str, str]) -> Process:
    source = Path(__file__).parents[2]
    return spawn([sys.executable, "-m", "gateway.cli", command], log=log, folder=source, env=environment)


def _still_runs(what: str, process: Process, log: Path) -> None:
    reap(process)
    if not process.is_alive:
        raise DidNotStart(f"{what} ended at once{last_words(log)}")
