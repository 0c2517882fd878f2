"""`make bench`: CPU per request and per relayed chunk on one core, side by side and interleaved; a table, and JSON."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.benchmarks.processes import ROOT, Target, pinned
from tests.benchmarks.targets import GOVERNED, MODEL, NGINX, nginx_program, standing

WARM_UP_SECONDS = 0.7


@dataclass(frozen=True, slots=True)
class Sample:
    """One window: CPU per unit of work, and what the client saw."""

    cpu_us: float
    per_second: float
    p50_ms: float
    p99_ms: float


def main() -> int:
    options = _options()
    console = Console()
    console.width = max(console.width, 110)
    cores = sorted(os.sched_getaffinity(0))
    core, others = cores[0], set(cores[1:]) or {cores[0]}
    if nginx_program() is None:
        console.print("nginx is not installed here: measured without it", style="yellow")
    if core in others:
        console.print("only one core: the load runs on it too, so rates and latencies say little", style="yellow")
    requests: dict[str, list[Sample]] = {}
    chunks: dict[str, list[Sample]] = {}
    with standing(core, others) as targets, pinned(others), Progress(console=console, transient=True) as progress:
        bar = progress.add_task("measuring", total=options.rounds * len(targets))
        for target in targets:
            _load(target, stream=False, seconds=WARM_UP_SECONDS)
        for turn in range(options.rounds):
            for target in targets[turn % len(targets) :] + targets[: turn % len(targets)]:
                requests.setdefault(target.name, []).append(_measure(target, stream=False, seconds=options.seconds))
                chunks.setdefault(target.name, []).append(_measure(target, stream=True, seconds=0))
                progress.advance(bar)
    report = _report(requests, chunks, options)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    console.print(_table(requests, chunks))
    console.print(
        f"medians of {options.rounds} interleaved rounds, lowest to highest in brackets; one core; also in {options.json.name}"
    )
    return 0


def _measure(target: Target, *, stream: bool, seconds: float) -> Sample:
    before = target.cpu_seconds()
    seen = _load(target, stream=stream, seconds=seconds)
    # What a call leaves to be done after its last byte (settling, logging) belongs to it.
    time.sleep(0.2)
    spent = target.cpu_seconds() - before
    count = seen["chunks"] if stream else seen["answers"]
    return Sample(spent / count * 1e6, count / seen["elapsed_seconds"], seen["p50_ms"], seen["p99_ms"])


def _load(target: Target, *, stream: bool, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.load", "--port", str(target.port), "--token", target.token]
    command += ["--model", MODEL, "--seconds", str(seconds), *(("--stream",) if stream else ())]
    seen: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120).stdout)
    if seen["errors"] or not seen["answers"]:
        raise SystemExit(f"{target.name}: {seen['errors']} of {seen['answers']} answers were wrong; nothing was measured")
    return seen


def _report(requests: dict[str, list[Sample]], chunks: dict[str, list[Sample]], options: argparse.Namespace) -> dict[str, Any]:
    return {
        "governed_cpu_us_per_request": _spread(requests[GOVERNED])["median"],
        "governed_cpu_us_per_chunk": _spread(chunks[GOVERNED])["median"],
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "nginx": "measured" if NGINX in requests else "not installed",
        "machine": {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)), "system": platform.platform()},
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "hiredis", "orjson")},
        "targets": {
            name: {
                "cpu_us_per_request": _spread(requests[name]),
                "cpu_us_per_chunk": _spread(chunks[name]),
                "requests_per_second": round(statistics.median(sample.per_second for sample in requests[name])),
                "p50_ms": round(statistics.median(sample.p50_ms for sample in requests[name]), 2),
                "p99_ms": round(statistics.median(sample.p99_ms for sample in requests[name]), 2),
            }
            for name in requests
        },
    }


def _spread(samples: list[Sample]) -> dict[str, float]:
    costs = [sample.cpu_us for sample in samples]
    return {"median": round(statistics.median(costs), 1), "lowest": round(min(costs), 1), "highest": round(max(costs), 1)}


def _table(requests: dict[str, list[Sample]], chunks: dict[str, list[Sample]]) -> Table:
    table = Table(title="CPU on one core")
    table.add_column("")
    for title in ("us per request", "us per chunk", "requests/s", "p50 ms", "p99 ms"):
        table.add_column(title, justify="right")
    for name, samples in requests.items():
        costs = (_spread(samples), _spread(chunks[name]))
        table.add_row(
            name,
            *(
                f"{cost['median']:g} [{cost['lowest']:g}-{cost['highest']:g}]".replace("[", "(").replace("]", ")")
                for cost in costs
            ),
            f"{statistics.median(sample.per_second for sample in samples):,.0f}",
            f"{statistics.median(sample.p50_ms for sample in samples):.2f}",
            f"{statistics.median(sample.p99_ms for sample in samples):.2f}",
        )
    return table


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each window of plain requests")
    parser.add_argument("--json", type=Path, default=ROOT / ".benchmarks" / "latest.json")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
