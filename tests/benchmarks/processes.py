"""Programs that are measured or that serve a measurement: started, pinned to cores, ended."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    port: int
    pid: int
    token: str = "none"

    def cpu_seconds(self) -> float:
        """Of the whole process tree, since it began."""
        root = psutil.Process(self.pid)
        times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
        return float(sum(spent.user + spent.system for spent in times))


@contextmanager
def pinned(cores: set[int]) -> Iterator[None]:
    """This process, and what it starts meanwhile, runs on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def program(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """One of this package's own programs."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.connect()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()
