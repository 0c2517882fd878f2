"""The folder of a local run (`.faregate`): what runs, its ports and secrets, and a lock so that one command works at a time."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from gateway.local.ports import free_port, is_free
from gateway.local.process import Process


class Busy(Exception):
    """Another `faregate up` or `down` works on this folder."""


class HomeUnfit(Exception):
    """The folder can't be used; the message says why and what to do."""


@dataclass(frozen=True)
class Service:
    """One process of a local run; `port` is 0 when it listens nowhere."""

    name: str
    pid: int
    started: float
    port: int
    log: str

    @property
    def process(self) -> Process:
        return Process(self.pid, self.started)


@dataclass(frozen=True)
class Home:
    """Everything in it is private to the user who ran `up`; removing the folder (after `down`) starts anew."""

    folder: Path

    def prepare(self) -> None:
        # Others may pass through it, not list it: PostgreSQL's user must reach its own folder when we are root.
        try:
            self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            (self.folder / "secrets").mkdir(mode=0o700, exist_ok=True)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise _unfit(error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Raises: Busy, HomeUnfit."""
        self.prepare()
        with self._open_lock() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"another `faregate up` or `down` is at work in {self.folder}; wait for it to end") from None
            yield

    def services(self) -> list[Service]:
        """In the order they were started; whether each still runs is its `process.is_alive`. Raises: HomeUnfit."""
        try:
            kept = json.loads(self._read("state.json"))
            return [Service(**entry) for entry in kept]
        except (ValueError, TypeError):
            return []

    def log(self, name: str) -> Path:
        """Where the service of this name writes, whether it runs or not."""
        kept = next((service.log for service in self.services() if service.name == name), None)
        if kept is not None:
            return Path(kept)
        beside = self.folder / name
        return (beside if beside.is_dir() else self.folder) / f"{name}.log"

    def find(self, name: str) -> Service | None:
        return next((service for service in self.services() if service.name == name and service.process.is_alive), None)

    def record(self, service: Service) -> None:
        others = [known for known in self.services() if known.name != service.name]
        self._write_state([*others, service])

    def forget(self, name: str) -> None:
        self._write_state([known for known in self.services() if known.name != name])

    def port(self, name: str) -> int:
        """The port that `name` had before, or a free one when it is new or its port is taken now."""
        path = self.folder / "ports.json"
        try:
            ports: dict[str, int] = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            ports = {}
        if name not in ports or not is_free(ports[name]):
            ports[name] = free_port()
            write_private(path, json.dumps(ports))
        return ports[name]

    def secret(self, name: str) -> str:
        """Made on first use and kept."""
        path = self.secret_file(name)
        if not path.exists():
            write_private(path, secrets.token_hex(24))
        return path.read_text().strip()

    def secret_file(self, name: str) -> Path:
        return self.folder / "secrets" / name

    def keep_environment(self, values: Mapping[str, str]) -> None:
        """What `faregate accounts list` and the like need to reach the same servers."""
        write_private(self.folder / "environment", "".join(f"{name}={value}\n" for name, value in values.items()))

    def environment(self) -> dict[str, str]:
        """Raises: HomeUnfit."""
        return dict(line.split("=", 1) for line in self._read("environment").splitlines() if "=" in line)

    def _read(self, name: str) -> str:
        """Nothing, where there is no such file yet."""
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise _unfit(error) from error

    def _open_lock(self) -> TextIO:
        try:
            return (self.folder / "lock").open("w")
        except OSError as error:
            raise _unfit(error) from error

    def _write_state(self, services: list[Service]) -> None:
        write_private(self.folder / "state.json", json.dumps([asdict(service) for service in services], indent=1))


def _unfit(error: OSError) -> HomeUnfit:
    return HomeUnfit(
        f"{error.filename} can't be used: {error.strerror}; be the user who ran `make up`, or set FAREGATE_HOME to another folder"
    )


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by us alone."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
