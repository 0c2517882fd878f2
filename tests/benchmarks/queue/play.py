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
from tests.support.gateway import get

IDLE_CALLS = 5
# A closed loop whose calls begin together ends in lockstep, and counts by sixteens.
BEGIN_APART_SECONDS = 0.25
SAMPLE_EVERY_SECONDS = 2.0
RUNNING, WAITING, CAP = "vllm:num_requests_running", "vllm:num_requests_waiting", "faregate_replica_cap"


@dataclass(slots=True)
class Played:
    """`seconds` is from the first arrival's zero to the last answer, or to the cut; `cpu` is CPU seconds by name."""

    answers: list[Answer]
    seconds: float = 0.0
    samples: list["Sample"] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """What the engine said that it runs and keeps waiting, and the gateway that it may be given; while calls arrive."""

    running: int
    waiting: int
    cap: int | None


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
    watch = asyncio.create_task(_watch(target, played.samples, until=began + seconds))
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


async def _watch(target: Target, samples: list[Sample], until: float) -> None:
    while time.perf_counter() < until:
        await asyncio.sleep(SAMPLE_EVERY_SECONDS)
        if (sample := await asyncio.to_thread(_sample, target)) is not None:
            samples.append(sample)


def _sample(target: Target) -> Sample | None:
    """None: the engine is no vLLM, or was too slow to say."""
    try:
        page = get(target.engine_port, "/metrics")[1].decode()
    except OSError:
        return None
    running, waiting = _gauge(page, RUNNING), _gauge(page, WAITING)
    if running is None or waiting is None:
        return None
    return Sample(running, waiting, None if target.gateway is None else _gauge(target.gateway.metrics(), CAP))


def _gauge(page: str, name: str) -> int | None:
    found = re.search(rf"^{name}\{{[^}}]*\}} (\S+)", page, re.MULTILINE)
    return None if found is None else int(float(found[1]))


def _cpu(target: Target) -> dict[str, float]:
    """Of whole process trees, since they began; `client` is this process."""
    spent = {name: sum(map(_tree_seconds, pids)) for name, pids in target.pids.items()}
    own = psutil.Process().cpu_times()
    return {**spent, "client": own.user + own.system}


def _tree_seconds(pid: int) -> float:
    root = psutil.Process(pid)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))
