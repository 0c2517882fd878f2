"""Gateways of others that are measured beside us, each installed in an environment of its own; one that can't be is left out."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.local.ports import free_port
from tests.benchmarks.processes import ROOT, Target, pinned, wait_for_port

# The leanest Rust router for engines that there is as a wheel: it has no keys, quotas or bill here.
SMG = "smg 1.13.0, ungoverned"
SMG_WHEEL = "smg==1.13.0"
_SMG_HOME = ROOT / ".benchmarks" / "smg"
_SMG_FLAGS = ("--policy", "round_robin", "--log-level", "error", "--disable-circuit-breaker", "--disable-retries")


def smg_program() -> Path | None:
    """Installs it where it is missing; says why where that fails."""
    program = _SMG_HOME / "bin" / "smg"
    if program.exists():
        return program
    uv = Path(sys.executable).with_name("uv")
    python = _SMG_HOME / "bin" / "python"
    steps = (
        ("venv", "--quiet", "--clear", "--python", sys.executable, _SMG_HOME),
        ("pip", "install", "--quiet", "--python", python, SMG_WHEEL),
    )
    for words in steps:
        done = subprocess.run([uv, *words], check=False, capture_output=True, text=True)
        if done.returncode:
            print(f"{SMG_WHEEL} can't be installed here: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
    return program


@contextmanager
def smg(program: Path, engine_port: int, core: int) -> Iterator[Target]:
    port, metrics_port = free_port(), free_port()
    command = [
        program,
        "launch",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--prometheus-host",
        "127.0.0.1",
        "--prometheus-port",
        metrics_port,
    ]
    command += ["--worker-urls", f"http://127.0.0.1:{engine_port}", *_SMG_FLAGS]
    with pinned({core}):
        process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            wait_for_port(port)
            yield Target(SMG, port, process.pid)
        finally:
            process.terminate()
            process.wait()
