"""`python -m tests.simulation.life_main --seeds 20`: months of life of as many shops; prints each seed and what was wrong."""

import argparse
import sys
import time

from billing.database import open_engine
from billing.seed import seed as seed_plans
from tests.simulation.life_run import DAYS, live
from tests.support.services import running_postgres


def main() -> int:
    options = _options()
    failed = False
    with running_postgres() as server:
        for seed in range(options.first, options.first + options.seeds):
            with server.database() as url:
                began = time.monotonic()
                seed_plans(url)
                engine = open_engine(url)
                lived = live(engine, seed, accounts=options.accounts, days=options.days)
                engine.dispose()
            words = ", ".join(f"{count} {word}" for word, count in lived.deeds.most_common())
            print(f"seed {seed}: {words}; {sum(lived.kills.values())} kills; {time.monotonic() - began:.0f} s", flush=True)
            for finding in lived.findings:
                print(f"  {finding}", flush=True)
            failed |= bool(lived.findings)
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--days", type=int, default=DAYS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
