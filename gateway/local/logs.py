"""`faregate logs`: the services' log files, each line with the name of who wrote it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.local.home import Home
from gateway.local.process import last_lines

POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Log:
    """One service's file, which is there also when the service is not."""

    name: str
    path: Path


def found(home: Home, names: Sequence[str]) -> list[Log]:
    """Those of `names` that were ever written."""
    logs = [Log(name, home.log(name)) for name in names]
    return [log for log in logs if log.path.exists()]


def show(logs: Sequence[Log], count: int, write: Callable[[str], None]) -> None:
    """The last `count` lines of each."""
    for log in logs:
        for line in last_lines(log.path, count).splitlines():
            write(f"{log.name:<9} {line}")


def follow(logs: Sequence[Log], write: Callable[[str], None]) -> None:
    """New lines as they come, until interrupted; a file that was rotated away is opened anew."""
    tails = [Tail(log.name, log.path) for log in logs]
    while True:
        for tail in tails:
            for line in tail.new_lines():
                write(f"{tail.name:<9} {line}")
        time.sleep(POLL_SECONDS)


class Tail:
    """What was written to one file since the last look; half a line waits for its end."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._read = path.stat().st_size if path.exists() else 0

    def new_lines(self) -> list[str]:
        if not self._path.exists():
            return []
        if self._path.stat().st_size < self._read:
            self._read = 0
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return whole.decode("utf-8", "replace").splitlines() if newline else []
