"""`make bench-queue`: our order beside a real vLLM's own two, at twice its capacity and along a rising load."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import uvloop

from billing.plans import DEFAULT_PLANS
from tests.benchmarks.queue.criteria import judged
from tests.benchmarks.queue.figures import figures
from tests.benchmarks.queue.findings import Findings, Setting
from tests.benchmarks.queue.page import page
from tests.benchmarks.queue.places import RUNS, Stores, alone, engine, stores, target_of
from tests.benchmarks.queue.play import Capacity, Played, measure, play
from tests.benchmarks.queue.plots import draw
from tests.benchmarks.queue.target import OUTPUT_TOKENS
from tests.benchmarks.queue.trace import SHARES, arrivals, endless
from tests.benchmarks.queue.variants import LINE, Policy, Variant, compared, curve, in_turns
from tests.benchmarks.run import cpu_name
from tests.engine.place import ROOT, Place
from tests.engine.vllm import Vllm

POLICIES: tuple[Policy, ...] = ("fcfs", "priority")
DOCS = ROOT / "docs"
# A gateway has read the plans, and its first report of the replica, by then.
SETTLE_SECONDS = 3.0


@dataclass(slots=True)
class Session:
    """What one run knows so far."""

    options: argparse.Namespace
    capacity: dict[str, Capacity] = field(default_factory=dict)
    played: dict[str, list[Played]] = field(default_factory=dict)
    salt: int = 0

    @property
    def one_x(self) -> float:
        """Requests a second."""
        return next(iter(self.capacity.values())).requests_per_second

    def next_salt(self) -> int:
        self.salt += 1
        return self.salt


def main() -> int:
    options = _options()
    if options.again is None:
        found = _measured(options)
        found.save(options.json)
    else:
        found = Findings.load(options.again)
    options.docs.mkdir(parents=True, exist_ok=True)
    (options.docs / "queue-benchmarks.md").write_text(page(found, "plots"))
    draw(found, options.docs / "plots")
    met = judged(found.compared)
    print("\n".join(one.line() for one in met))
    print(f"{sum(one.is_met for one in met)} of {len(met)} are met; page and pictures are in {options.docs}")
    return 0


def _measured(options: argparse.Namespace) -> Findings:
    place = Place.of_this_machine()
    if not place.is_ready:
        raise SystemExit("faregate: vLLM is not installed here: `python -m tests.engine.install` does it")
    session = Session(options)
    wanted = [*compared(), *curve()]
    with stores() as kept:
        for policy in POLICIES:
            _tell(f"vLLM, {policy}")
            with engine(place, policy) as started:
                _measure_capacity(session, policy, started)
                for variant in in_turns([one for one in wanted if one.policy == policy]):
                    _play(session, variant, started, kept)
    return _findings(session, wanted)


def _measure_capacity(session: Session, policy: Policy, started: Vllm) -> None:
    options = session.options
    calls = endless(options.seed, 4000)
    seen = uvloop.run(measure(alone(started), calls, session.next_salt(), at_once=RUNS, seconds=options.capacity_seconds))
    session.capacity[policy] = seen
    rates = f"{seen.requests_per_second:.2f} requests/s, {seen.tokens_per_second:.0f} tokens/s"
    _tell(f"  capacity {rates}, {seen.idle_ttft:.2f} s to the first token of a call alone")


def _play(session: Session, variant: Variant, started: Vllm, kept: Stores) -> None:
    options = session.options
    trace = arrivals(options.seed, session.one_x * variant.load, options.seconds)
    with target_of(variant, started, kept) as target:
        time.sleep(SETTLE_SECONDS)
        played = uvloop.run(
            play(target, trace, session.next_salt(), seconds=options.seconds, drain_seconds=options.drain_seconds)
        )
    session.played.setdefault(variant.name, []).append(played)
    seen = figures([played], _targets_ms())
    told = (f"{name} {one.ttft_median} ({one.ttft_p95}) {one.served}/{one.arrived}" for name, one in seen.classes.items())
    _tell(f"  {variant.title}: {', '.join(told)}; {seen.useful_per_second} tokens/s in {seen.seconds} s")
    _tell(f"    engine ran {seen.running_mean}, kept waiting {seen.waiting_mean}; cap {seen.cap_mean}; CPU {seen.cpu_seconds}")
    for reason, count in seen.reasons.items():
        _tell(f"    {count} {reason}")


def _findings(session: Session, wanted: Sequence[Variant]) -> Findings:
    options = session.options
    return Findings(
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        machine=f"{os.cpu_count()} cores of {cpu_name()}",
        versions={"vLLM": "0.32.0 for CPUs", "Python": platform.python_version(), "uvicorn": version("uvicorn")},
        setting=Setting(options.seed, options.seconds, options.drain_seconds, RUNS, LINE, OUTPUT_TOKENS, _targets_ms()),
        capacity=session.capacity,
        titles={variant.name: variant.title for variant in wanted},
        loads={variant.name: variant.load for variant in wanted},
        compared={one.name: figures(session.played[one.name], _targets_ms()) for one in compared()},
        curve={one.name: figures(session.played[one.name], _targets_ms()) for one in curve()},
    )


def _targets_ms() -> Mapping[str, int]:
    return {name: plan.queue.ttft_target_ms or 0 for name in SHARES for plan in DEFAULT_PLANS if plan.service_class == name}


def _tell(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the queue on a real vLLM.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of arrivals, for each variant")
    parser.add_argument("--drain-seconds", type=float, default=120.0, help="after them, then what is left is cut")
    parser.add_argument("--capacity-seconds", type=float, default=30.0)
    parser.add_argument("--json", type=Path, default=DOCS / "queue-benchmarks.json")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes, and plots/ beside it")
    parser.add_argument("--quick", action="store_true", help="to see that it works: seconds each, nothing into docs")
    parser.add_argument("--again", type=Path, help="measure nothing: page and pictures from this JSON")
    options = parser.parse_args()
    if options.quick:
        folder = ROOT / ".benchmarks" / "queue"
        options.seconds, options.drain_seconds, options.capacity_seconds = 10.0, 20.0, 8.0
        options.json, options.docs = folder / "queue-benchmarks.json", folder
    return options


if __name__ == "__main__":
    sys.exit(main())
