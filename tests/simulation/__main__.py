"""`python -m tests.simulation`: explores the hold protocol with every pair of faults, and prints what is left over."""

import sys
import time

from tests.simulation.explore import Explored, explore
from tests.simulation.faults import ALL, FLUSHED, ROLLED_BACK
from tests.simulation.residues import unexpected
from tests.simulation.world import World

# A third call makes thirty times as many worlds; with it, the faults that leave Valkey's memory alone.
KEEPS_MEMORY = tuple(fault for fault in ALL if fault not in (FLUSHED, ROLLED_BACK))
SIZES = (
    ("2 calls, quota 1, every pair of faults", World.of((0, 1), 1, trims_at_once=True), 2, ALL),
    ("2 calls, quota 1, every fault, trimmed at any moment", World.of((0, 1), 1), 1, ALL),
    ("3 calls, quota 2, every fault but Valkey's own", World.of((0, 1, 0), 2, trims_at_once=True), 1, KEEPS_MEMORY),
)


def main() -> int:
    failed = False
    for title, start, faults_max, allowed in SIZES:
        began = time.monotonic()
        explored = explore(start, faults_max, allowed)
        print(f"{title}: {explored.worlds:,} worlds, {explored.at_rest:,} at rest, {time.monotonic() - began:.0f} s", flush=True)
        _print_table(explored)
        failed |= _print_surprises(explored, faults_max)
    return int(failed)


def _print_table(explored: Explored) -> None:
    for name, causes in sorted(explored.causes.items()):
        for cause in sorted(causes):
            print(f"  {name:45} <- {' + '.join(cause)}")


def _print_surprises(explored: Explored, faults_max: int) -> bool:
    surprises = list(unexpected(explored, faults_max))
    for name, cause in surprises:
        was_found = (name, cause) in explored.examples
        print(
            f"  {'NOT DOCUMENTED' if was_found else 'DOCUMENTED, NOT FOUND'}: {name} <- {' + '.join(cause) or 'no fault at all'}"
        )
        for step in explored.story(name, cause) if was_found else ():
            print(f"      {step}")
    return bool(surprises)


if __name__ == "__main__":
    sys.exit(main())
