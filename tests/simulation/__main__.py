"""`python -m tests.simulation`: explores the hold protocol with every pair of faults, and prints what is left over."""

import sys
import time

from tests.simulation.explore import Explored, explore
from tests.simulation.residues import unexpected
from tests.simulation.world import World

SIZES = (
    ("2 gateways, 2 calls, quota 1, every pair of faults", World.of((0, 1), 1, trims_at_once=True), 2),
    ("2 gateways, 3 calls, quota 2, every single fault", World.of((0, 1, 0), 2), 1),
)


def main() -> int:
    failed = False
    for title, start, faults_max in SIZES:
        began = time.monotonic()
        explored = explore(start, faults_max)
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
