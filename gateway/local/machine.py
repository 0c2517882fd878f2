"""What a machine must have before anything is started on it; each lack is one line that says what to do."""

import os
import platform
import shutil
import sys
from pathlib import Path

import psutil

from gateway.local.ports import is_free

PYTHON_MIN = (3, 11)
# An empty PostgreSQL is 40 MB; the rest is room for its write-ahead log (80 MB at first) and a day of trying things out.
FREE_BYTES_MIN = 512 * 1024 * 1024


class MachineUnfit(Exception):
    """The local run can't work here; the message says why and what to do."""


def check_platform() -> None:
    """Raises: MachineUnfit."""
    if sys.version_info < PYTHON_MIN:
        raise MachineUnfit(f"Faregate needs Python 3.11 or newer; this is {platform.python_version()} ({sys.executable})")
    if os.name != "posix":
        raise MachineUnfit("`faregate up` runs on Linux and macOS; on Windows use it inside WSL, or use docker compose")


def check_space(folder: Path) -> None:
    """Raises: MachineUnfit."""
    free = shutil.disk_usage(existing(folder)).free
    if free < FREE_BYTES_MIN:
        raise MachineUnfit(
            f"the disk of {folder} has {free // 2**20} MB free and {FREE_BYTES_MIN // 2**20} MB are needed;"
            " make room, or set FAREGATE_HOME to a folder on another disk"
        )


def check_port(port: int, what: str, option: str) -> None:
    """Raises: MachineUnfit."""
    if not is_free(port):
        raise MachineUnfit(
            f"port {port} for {what} is taken{_by_whom(port)}; stop that, or choose another: `make up {option}=<port>`"
        )


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there already."""
    return next(path for path in (folder, *folder.resolve().parents) if path.exists())


def _by_whom(port: int) -> str:
    try:
        for found in psutil.net_connections("tcp"):
            if found.laddr and found.laddr.port == port and found.status == psutil.CONN_LISTEN and found.pid:
                return f" by {psutil.Process(found.pid).name()} (pid {found.pid})"
    except psutil.Error:
        return ""
    return ""
