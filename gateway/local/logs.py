"""`faregate logs`: the services' log files, each line with the name of who wrote it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.local.home import Service
from gateway.local.process import last_lines

POLL_SECONDS = 0.25


def show(services: Sequence[Service], count: int, write: Callable[[str], None]) -> None:
    """The last `count` lines of each."""
    for service in services:
        for line in last_lines(Path(service.log), count).splitlines():
            write(f"{service.name:<9} {line}")


def follow(services: Sequence[Service], write: Callable[[str], None]) -> None:
    """New lines as they come, until interrupted; a file that was rotated away is opened anew."""
    tails = [Tail(service.name, Path(service.log)) for service in services]
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
