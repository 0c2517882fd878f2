"""Fixture `stand_in_engine`: starts stand-in engines, and ends them with the test."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class StandInEngine:
    """A running stand-in engine."""

    process: subprocess.Popen[str]
    url: str
    model: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def replica(self, name: str = "stand-in", slots: int = 64) -> Replica:
        return Replica.at(self.url, name=name, model=self.model, engine=ENGINE_KINDS["vllm"], slots=slots)

    def fleet_entry(self, name: str = "stand-in", slots: int = 64) -> str:
        """A `[[replica]]` of a fleet file."""
        return f'[[replica]]\nid = "{name}"\nmodel = "{self.model}"\nengine = "vllm"\nurl = "{self.url}"\nslots = {slots}\n'

    def journal(self) -> dict[str, Any]:
        """`requests` (received_ns, first_byte_ns, finished_ns, aborted_ns, chunks, headers, body), `running`, `high_water`."""
        journal: dict[str, Any] = self._ask("GET", "/journal")
        return journal

    def reset_journal(self) -> None:
        self._ask("POST", "/journal/reset")

    def wait_for(self, found: Callable[[dict[str, Any]], bool], seconds: float = 5.0) -> dict[str, Any]:
        """The journal, as soon as `found` holds of it. Raises AssertionError."""
        deadline = time.monotonic() + seconds
        while True:
            journal = self.journal()
            if found(journal):
                return journal
            assert time.monotonic() < deadline, f"the engine's journal never showed it: {journal}"
            time.sleep(0.01)

    def freeze(self) -> None:
        """Accepts connections (the kernel does) and answers nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _ask(self, method: str, path: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def start_stand_in_engine(*, port: int = 0, model: str = "stand-in", keep_alive_seconds: float = 5.0) -> StandInEngine:
    """The caller ends it with `kill`."""
    command = [sys.executable, "-m", "tests.support.engine", "--port", str(port), "--model", model]
    command += ["--keep-alive", str(keep_alive_seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    if not line.startswith("listening on "):
        process.kill()
        process.wait()
        raise AssertionError(f"the stand-in engine did not start: {line!r}")
    return StandInEngine(process, line.removeprefix("listening on ").strip(), model)


@pytest.fixture
def stand_in_engine() -> Iterator[Callable[..., StandInEngine]]:
    """`stand_in_engine(port=0, model="stand-in", keep_alive_seconds=5.0)`; as many as wanted."""
    engines: list[StandInEngine] = []

    def start(**options: Any) -> StandInEngine:
        engine = start_stand_in_engine(**options)
        engines.append(engine)
        return engine

    yield start
    for engine in engines:
        engine.kill()
