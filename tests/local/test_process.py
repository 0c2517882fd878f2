"""A process is ended only when it is ours, whatever its pid says."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from gateway.local.process import Process, last_lines, last_words, reap, spawn

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


def started(code: str, folder: Path) -> Process:
    process = spawn([sys.executable, "-c", code], log=folder / "log", folder=folder, env=os.environ)
    deadline = time.monotonic() + 10
    while "ready" not in last_lines(folder / "log") and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    process = started("import time; print('ready', flush=True); time.sleep(60)", tmp_path)
    recycled = Process(process.pid, process.started - 3600)
    assert not recycled.is_alive
    assert recycled.end()
    assert process.is_alive
    process.end()
    assert not process.is_alive


def test_a_process_that_ignores_the_asking_is_killed_after_the_grace(tmp_path: Path) -> None:
    process = started(STUBBORN, tmp_path)
    assert process.end(grace_seconds=0.2) is False
    assert not process.is_alive


def test_it_outlives_a_ctrl_c_in_our_terminal(tmp_path: Path) -> None:
    process = started("import time; print('ready', flush=True); time.sleep(60)", tmp_path)
    try:
        assert os.getsid(process.pid) == process.pid
        assert os.getpgid(process.pid) != os.getpgid(0)
    finally:
        process.end()


def test_children_that_it_leaves_behind_go_too(tmp_path: Path) -> None:
    code = "import subprocess,sys,time; c=subprocess.Popen(['sleep','60']); print('ready', c.pid, flush=True); time.sleep(60)"
    process = started(code, tmp_path)
    child = psutil.Process(int(last_lines(tmp_path / "log").split()[1]))
    process.end()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_one_that_ended_by_itself_is_seen_as_gone(tmp_path: Path) -> None:
    process = started("print('ready')", tmp_path)
    deadline = time.monotonic() + 10
    while process.is_alive and time.monotonic() < deadline:
        reap(process)
        time.sleep(0.01)
    assert not process.is_alive
    assert process.end(first=signal.SIGKILL)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Traceback of last week\nfaregate: port 1 is taken\n", ": port 1 is taken"),
        ("Traceback\n  line 1\n", "; its last lines:\nTraceback\n  line 1"),
    ],
)
def test_the_one_line_that_said_why_stood_below_a_page_of_older_log(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "log").write_text(written)
    assert last_words(tmp_path / "log") == said


@pytest.mark.parametrize("written", [b"", b"one\ntwo\nthree\n", b"\xff\xfe broken \n"])
def test_the_end_of_a_log_is_readable_whatever_is_in_it(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "log").write_bytes(written)
    assert last_lines(tmp_path / "log", 2)
