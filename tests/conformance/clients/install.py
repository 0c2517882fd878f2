"""Installs the Python clients under .clients/, an environment for each lock in locks/; does nothing for one that is there."""

import subprocess
import sys
import time
from pathlib import Path

from tests.conformance.clients.programs import CLIENTS

LOCKS = Path(__file__).with_name("locks")


def main() -> None:
    for lock in sorted(LOCKS.glob("*.txt")):
        place = CLIENTS / lock.stem
        stamp = place / "installed"
        if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
            continue
        begun = time.monotonic()
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, place)
        # All that they import is compiled now: in a test it would take longer than the test.
        _uv("pip", "install", "--quiet", "--no-deps", "--compile-bytecode", "--python", place / "bin" / "python", "-r", lock)
        stamp.write_bytes(lock.read_bytes())
        print(f"  {lock.stem}: {len(lock.read_text().splitlines())} packages in {time.monotonic() - begun:.0f} s", flush=True)


def _uv(*words: str | Path) -> None:
    done = subprocess.run([Path(sys.executable).with_name("uv"), *words], check=False)
    if done.returncode != 0:
        sys.exit(f"faregate: uv {words[0]} failed; what it said is above")


if __name__ == "__main__":
    main()
