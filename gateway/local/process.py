"""One process that we started: begun in a session of its own, known by pid and start time, ended by nobody else's mistake."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

# A log that has grown past this starts anew at the next start; one older generation is kept.
LOG_MAX_BYTES = 20 * 1024 * 1024
# The kernel rounds a start time to clock ticks (10 ms); psutil adds the boot time, which NTP may move a little.
SAME_START_SECONDS = 2.0


class DidNotStart(Exception):
    """A process ended, or stayed silent, before it was ready; the message says what it printed last."""


@dataclass(frozen=True)
class Process:
    """A pid alone may be somebody else's by now; with its start time it is ours."""

    pid: int
    started: float

    @property
    def is_alive(self) -> bool:
        try:
            found = self._find()
            return found is not None and found.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def end(self, *, first: signal.Signals = signal.SIGTERM, grace_seconds: float = 10.0) -> bool:
        """Ask with `first`, and kill after the grace. Returns whether it went by itself."""
        found = self._find()
        if found is None:
            return True
        family = [self, *_children(found)]
        with suppress(psutil.NoSuchProcess):
            found.send_signal(first)
        went_by_itself = self._is_gone_within(grace_seconds)
        for member in family:
            member.kill()
        return went_by_itself

    def kill(self) -> None:
        """At once, if it is still there and still ours."""
        if (found := self._find()) is not None and self.is_alive:
            with suppress(psutil.NoSuchProcess):
                found.kill()
            self._is_gone_within(10)

    def _is_gone_within(self, seconds: float) -> bool:
        """A zombie counts as gone: where process 1 collects none (many containers), it stays one for good."""
        deadline = time.monotonic() + seconds
        while self.is_alive:
            reap(self)
            if time.monotonic() > deadline:
                return False
            pause()
        reap(self)
        return True

    def _find(self) -> psutil.Process | None:
        try:
            found = psutil.Process(self.pid)
            return found if abs(found.create_time() - self.started) < SAME_START_SECONDS else None
        except psutil.NoSuchProcess:
            return None


class Server(Protocol):
    """Something of ours that runs as one process."""

    def launch(self) -> Process: ...
    def wait(self, process: Process) -> None: ...
    def stop(self, process: Process) -> bool: ...


def started(server: Server) -> Process:
    """Launched and answering; what never answers is stopped again. Raises: DidNotStart, and what `launch` raises."""
    process = server.launch()
    try:
        server.wait(process)
    except DidNotStart:
        server.stop(process)
        raise
    return process


def _children(found: psutil.Process) -> list[Process]:
    try:
        return [Process(child.pid, child.create_time()) for child in found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path,
    folder: Path,
    env: Mapping[str, str],
    user: int | None = None,
    group: int | None = None,
) -> Process:
    """Start a detached process that writes to `log`; it outlives us, and a Ctrl-C in our terminal doesn't reach it."""
    if log.exists() and log.stat().st_size > LOG_MAX_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(env),
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )
    child.returncode = 0  # it is meant to outlive us: no warning when this object goes
    return Process(child.pid, psutil.Process(child.pid).create_time())


def clean_environment() -> dict[str, str]:
    """What a server needs of our environment; nothing of the user's PG*, LD_PRELOAD or proxies changes how it runs."""
    kept = ("PATH", "TMPDIR", "SYSTEMROOT")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C", "TZ": "UTC"}


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, for a message to a person."""
    if not log.exists():
        return "(it printed nothing)"
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 20_000))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-count:]) or "(it printed nothing)"


def last_words(log: Path) -> str:
    """Why a program of ours ended: the error that it put in plain words, else the end of its log."""
    lines = last_lines(log)
    _, plain, words = ("\n" + lines).rpartition("\nfaregate: ")
    return f": {words}" if plain else f"; its last lines:\n{lines}"


def reap(process: Process) -> None:
    """Collect a child that has ended, so that no zombie keeps its pid."""
    try:
        os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return


def pause(seconds: float = 0.02) -> None:
    time.sleep(seconds)
