"""Plays arrivals against a target in their time, and measures what a target can do at most."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from tests.benchmarks.queue.call import Answer, call
from tests.benchmarks.queue.target import Target
from tests.benchmarks.queue.trace import Arrival

IDLE_CALLS = 5
# A closed loop whose calls begin together ends in lockstep, and counts by sixteens.
BEGIN_APART_SECONDS = 0.25
CAP_EVERY_SECONDS = 2.0
_CAP = re.compile(r"^faregate_replica_cap\{[^}]*\} (\S+)", re.MULTILINE)


@dataclass(slots=True)
class Played:
    """`seconds` is from the first arrival's zero to the last answer, or to the cut. `caps` is what the gateway gave the replica,
    every two seconds; `cpu` CPU seconds by name."""

    answers: list[Answer]
    seconds: float = 0.0
    caps: list[int] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of a closed loop of `at_once` calls; `idle_ttft` is the median of single ones."""

    at_once: int
    requests_per_second: float
    tokens_per_second: float
    idle_ttft: float


async def play(target: Target, trace: Sequence[Arrival], salt: int, *, seconds: float, drain_seconds: float) -> Played:
    """What is not over `drain_seconds` after the arrivals is cut."""
    played = Played([Answer(arrival.class_, arrival.at) for arrival in trace])
    before, began = _cpu(target), time.perf_counter()
    watch = asyncio.create_task(_watch(target, played.caps))
    calls = [
        asyncio.create_task(_in_time(target, target.request(arrival, salt * 10_000 + number), answer, began))
        for number, (arrival, answer) in enumerate(zip(trace, played.answers, strict=True))
    ]
    _, unfinished = await asyncio.wait(calls, timeout=seconds + drain_seconds)
    played.seconds = time.perf_counter() - began
    for task in (*unfinished, watch):
        task.cancel()
    for outcome in await asyncio.gather(*calls, watch, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
    played.cpu = {name: round(spent - before[name], 2) for name, spent in _cpu(target).items()}
    return played


async def measure(target: Target, trace: Sequence[Arrival], salt: int, *, at_once: int, seconds: float) -> Capacity:
    numbers = iter(range(salt * 10_000, (salt + 1) * 10_000))

    async def one(arrival: Arrival) -> Answer:
        answer = Answer(arrival.class_, 0.0)
        await call(target.port, target.request(arrival, next(numbers)), answer)
        if not answer.is_whole:
            raise SystemExit(f"faregate: the engine failed with {answer.status}: nothing was measured")
        return answer

    idle = sorted([(await one(arrival)).ttft or 0.0 for arrival in trace[:IDLE_CALLS]])
    ends, tokens = list[float](), list[int]()
    settled = time.perf_counter() + at_once * BEGIN_APART_SECONDS + 1

    async def loop(number: int) -> None:
        await asyncio.sleep(number * BEGIN_APART_SECONDS)
        for arrival in trace[IDLE_CALLS + number :: at_once]:
            answer = await one(arrival)
            now = time.perf_counter()
            if now >= settled:
                ends.append(now)
                tokens.append(answer.tokens)
            if now >= settled + seconds and len(ends) >= 2 * at_once:
                return

    await asyncio.gather(*(loop(number) for number in range(at_once)))
    # From one end to another, so that no call is half inside; not those that ended while the loop emptied.
    last = len(ends) - at_once
    took = ends[last] - ends[0]
    return Capacity(at_once, last / took, sum(tokens[1 : last + 1]) / took, idle[len(idle) // 2])


async def _in_time(target: Target, request: bytes, answer: Answer, began: float) -> None:
    await asyncio.sleep(began + answer.at - time.perf_counter())
    answer.late_seconds = time.perf_counter() - began - answer.at
    await call(target.port, request, answer)


async def _watch(target: Target, caps: list[int]) -> None:
    while target.gateway is not None:
        page = await asyncio.to_thread(target.gateway.metrics)
        caps += [int(float(found)) for found in _CAP.findall(page)]
        await asyncio.sleep(CAP_EVERY_SECONDS)


def _cpu(target: Target) -> dict[str, float]:
    """Of whole process trees, since they began; `client` is this process."""
    spent = {name: sum(map(_tree_seconds, pids)) for name, pids in target.pids.items()}
    own = psutil.Process().cpu_times()
    return {**spent, "client": own.user + own.system}


def _tree_seconds(pid: int) -> float:
    root = psutil.Process(pid)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))
