"""The worker as a process of its own, ended with the block."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = "from gateway.settings import Settings; from gateway.worker import run; run(Settings.load())"


@contextmanager
def worker(database_url: str, valkey_url: str, log: Path, *, crash_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": valkey_url,
        "FAREGATE_KEY_PEPPER": "p" * 32,
        "FAREGATE_CRASH_AT": crash_at,
    }
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=output, stderr=output)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(timeout=20)
