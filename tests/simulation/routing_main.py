"""`python -m tests.simulation.routing_main`: our routing beside its peers' under many seeds; a table, and plots."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from tests.simulation.routing_peers import PEERS, ours
from tests.simulation.routing_plots import draw
from tests.simulation.routing_world import Router, Run, play

LOADS = {"light": 0.4, "busy": 0.7, "overfull": 8.0}
ROUTERS: Sequence[Callable[[], Router]] = (*PEERS, ours, lambda: ours(2), lambda: ours(4))


def main() -> None:
    options = _options()
    seeds = range(options.first, options.first + options.seeds)
    found: dict[tuple[str, bool], dict[str, list[Run]]] = {}
    for name, load in LOADS.items():
        for salted in (False, True):
            rows = found[name, salted] = {}
            for make in ROUTERS:
                runs = [play(make(), seed, calls=options.calls, load=load, salted=salted) for seed in seeds]
                rows[runs[0].policy] = runs
            _print(name, rows, seeds, salted=salted)
    if options.plots:
        draw(options.plots, found)
        print(f"plots are in {options.plots}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulates routing.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=3000, help="of each seed")
    parser.add_argument("--plots", type=Path, help="folder to draw into")
    return parser.parse_args()


def _print(load: str, rows: dict[str, list[Run]], seeds: range, *, salted: bool) -> None:
    in_use = fmean(run.in_use for run in rows["ours"])
    walls = "accounts apart" if salted else "prefixes shared"
    print(f"\n{load}, {walls}, seeds {seeds[0]} to {seeds[-1]}: {in_use:.0%} of the places in use")
    print(f"{'':26} {'hits':>6} {'spread':>7} {'TTFT mean':>10} {'p99':>7}")
    for policy, runs in rows.items():
        firsts = sorted(first for run in runs for first in run.first_tokens())
        hits, spread = fmean(run.hits for run in runs), fmean(run.spread for run in runs)
        print(f"{policy:26} {hits:6.3f} {spread:7.2f} {fmean(firsts):10.3f} {firsts[len(firsts) * 99 // 100]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
