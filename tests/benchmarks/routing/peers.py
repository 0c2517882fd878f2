"""Routers of others, each installed in an environment of its own; one that can't be is left out."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.local.ports import free_port
from tests.benchmarks.processes import ROOT, wait_for_port


@dataclass(frozen=True, slots=True)
class Peer:
    """`command` is what stands before its flags; both speak of workers and policies alike, being of one family."""

    name: str
    wheel: str
    command: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return ROOT / ".benchmarks" / self.wheel.partition("=")[0]


PEERS = (
    Peer("SMG cache_aware", "smg==1.13.0", ("smg", "launch")),
    Peer("vllm-router cache_aware", "vllm-router==0.1.17", ("vllm-router",)),
)


def is_installed(peer: Peer) -> bool:
    """Installs it where it is missing; says why where that fails."""
    if (peer.folder / "bin" / peer.command[0]).exists():
        return True
    uv, python = Path(sys.executable).with_name("uv"), peer.folder / "bin" / "python"
    for words in (
        ("venv", "--quiet", "--clear", "--python", sys.executable, peer.folder),
        ("pip", "install", "--quiet", "--python", python, peer.wheel),
    ):
        done = subprocess.run([uv, *words], check=False, capture_output=True, text=True)
        if done.returncode:
            print(f"{peer.wheel} can't be installed here: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return False
    return True


@contextmanager
def running(peer: Peer, engines: Sequence[str]) -> Iterator[str]:
    """Its URL."""
    port, metrics_port = free_port(), free_port()
    command = [
        peer.folder / "bin" / peer.command[0], *peer.command[1:], "--host", "127.0.0.1", "--port", port,
        "--prometheus-host", "127.0.0.1", "--prometheus-port", metrics_port, "--policy", "cache_aware",
        "--log-level", "error", "--worker-urls", *engines,
    ]  # fmt: skip
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
