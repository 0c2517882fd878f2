"""Clients in environments of their own under .clients/, and their programs run as a user would."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.node import BINARIES, ROOT, SCRIPTS

CLIENTS = ROOT / ".clients"
Done = subprocess.CompletedProcess[str]
OUT_OF_TIME = 124
# Of the environment, what a program can't do without; settings of another installation stay outside.
KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
# Each asks for something outside this machine when it starts.
ALONE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "AIDER_CHECK_UPDATE": "false", "AIDER_ANALYTICS": "false",
    "AIDER_SHOW_RELEASE_NOTES": "false", "OPENCODE_DISABLE_AUTOUPDATE": "true", "OPENCODE_DISABLE_MODELS_FETCH": "true",
    "CONTINUE_TELEMETRY_ENABLED": "0", "CLINE_NO_AUTO_UPDATE": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip


def python_of(environment: str) -> Path:
    """The interpreter that a lock in `locks/` was installed for."""
    found = CLIENTS / environment / "bin" / "python"
    assert found.is_file(), "the clients are not installed: run `make clients`"
    return found


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's machine: a home and a folder to work in, with every program on its path."""

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        (self.home / name).parent.mkdir(parents=True, exist_ok=True)
        (self.home / name).write_text(text, encoding="utf-8")

    def python(self, environment: str, text: str, seconds: float = 50) -> Done:
        return self._run([str(python_of(environment)), "-"], text, SCRIPTS, seconds)

    def node(self, text: str, seconds: float = 50) -> Done:
        """A module; it finds packages from the folder that it runs in."""
        return self._run(["node", "--input-type=module", "-"], text, SCRIPTS, seconds)

    def shell(self, text: str, seconds: float = 50) -> Done:
        """In the home; what it started is ended with it when the time is over."""
        return self._run(["timeout", f"{seconds:g}", "sh", "-ec", text], "", self.home, seconds + 5)

    def _run(self, command: list[str], given: str, folder: Path, seconds: float) -> Done:
        bins = [BINARIES, SCRIPTS / "node_modules" / ".bin", CLIENTS / "aider" / "bin"]
        assert all(place.is_dir() for place in bins), "the clients are not installed: run `make clients`"
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | ALONE | {"HOME": str(self.home)}
        environment["PATH"] = os.pathsep.join([*map(str, bins), environment["PATH"]])
        environment |= self.variables
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, env=environment, cwd=folder)
