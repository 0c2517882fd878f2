"""The project's own files, as the tidy tests read them."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "billing", "models", "backends", "migrations")


@cache
def python_files() -> tuple[Path, ...]:
    """All of ours, tests included."""
    return tuple(sorted(path for top in (*PACKAGES, "tests") for path in (ROOT / top).rglob("*.py")))


@cache
def product_files() -> tuple[Path, ...]:
    return tuple(path for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def tracked_files() -> tuple[Path, ...]:
    """What git knows; everything in the folder where there is no git (an unpacked archive)."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        return tuple(path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts)
    return tuple(path for name in done.stdout.decode().split("\0") if name and (path := ROOT / name).is_file())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
