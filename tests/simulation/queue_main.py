"""`python -m tests.simulation.queue_main`: the order of the line under many seeds, alone and with the scripts; plots."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import redis

from tests.backends.queue.lockstep import Lockstep
from tests.backends.queue.model import PoolModel
from tests.simulation.queue_plots import draw
from tests.simulation.queue_run import GATEWAYS, Broken, Orders, alone, play
from tests.simulation.queue_world import Order
from tests.support.services import running_valkey


def main() -> int:
    options = _options()
    seeds = range(options.first, options.first + options.seeds)
    is_whole = _play(seeds, options.calls, alone, "the order alone")
    if options.scripts:
        with running_valkey() as server, redis.Redis.from_url(server.url, decode_responses=True) as client:

            def in_lockstep(model: PoolModel) -> Order:
                return Lockstep(client, model, GATEWAYS)

            is_whole &= _play(seeds[: options.scripts], options.calls, in_lockstep, "in lockstep with the scripts")
    if options.plots:
        draw(options.plots)
        print(f"plots are in {options.plots}")
    return 0 if is_whole else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulates the order of the line.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=250, help="of each seed")
    parser.add_argument(
        "--scripts", type=int, default=4, help="so many of the seeds also in lockstep with the scripts on a Valkey"
    )
    parser.add_argument("--plots", type=Path, help="folder to draw waits and shares into")
    return parser.parse_args()


def _play(seeds: range, calls: int, order_of: Orders, title: str) -> bool:
    began, ends, steps, is_whole = time.monotonic(), Counter[str](), 0, True
    for seed in seeds:
        try:
            world = play(seed, calls, order_of)
        except Broken as broken:
            print(f"BROKEN: {broken}\n  again: python -m tests.simulation.queue_main --first {seed} --seeds 1 --calls {calls}")
            is_whole = False
        else:
            steps += world.steps
            ends.update(call.how for call in world.calls)
            ends["given back"] += sum(call.returned for call in world.calls)
    took = f"{len(seeds) * calls:,} calls, {steps:,} steps, {time.monotonic() - began:.0f} s"
    print(f"{title}: seeds {seeds[0]} to {seeds[-1]}, {took}")
    print("  " + ", ".join(f"{how} {count:,}" for how, count in ends.most_common()), flush=True)
    return is_whole


if __name__ == "__main__":
    sys.exit(main())
