"""The program as it is typed: what it calls itself, and what it imports before it answers."""

import subprocess
import sys

from tests.tidy.source import ROOT


def typed(*words: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, "-m", "gateway.cli", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_called_the_program_python_m_gateway_cli() -> None:
    assert "Usage: faregate keys " in typed("keys", "frob").stderr


def test_one_command_imported_all_the_others() -> None:
    imported = typed("models", "--help", python=("-X", "importtime")).stderr
    assert "models.catalogue" in imported
    assert "sqlalchemy" not in imported


def test_the_list_of_commands_has_every_group() -> None:
    listed = typed("--help").stdout
    assert all(f" {name} " in listed for name in ("up", "doctor", "accounts", "keys", "ledger", "models", "plans", "usage"))
