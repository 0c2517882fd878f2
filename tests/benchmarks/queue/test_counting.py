"""That the benchmark of the queue counts right: what was useful, what was refused, and when the first content came."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.queue.call import Answer, call
from tests.benchmarks.queue.criteria import judged
from tests.benchmarks.queue.figures import figures
from tests.benchmarks.queue.findings import Findings, Setting
from tests.benchmarks.queue.page import page
from tests.benchmarks.queue.play import Capacity, Played, Sample, play
from tests.benchmarks.queue.plots import draw
from tests.benchmarks.queue.target import Target
from tests.benchmarks.queue.trace import SHARES, arrivals
from tests.support.engine_fixture import StandInEngine


def of(*words: Any, **more: Any) -> list[Played]:
    return [Played(*words, **more)]


TARGETS_MS = {"premium": 1_000, "pro": 3_000, "free": 30_000}


async def asked(engine: StandInEngine, **script: Any) -> Answer:
    body = json.dumps({"model": engine.model, "messages": [], "stream": True, "stream_options": {"include_usage": True}}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-engine-script: {json.dumps(script)}\r\n"
    answer = Answer("free", 0.0)
    await call(engine.port, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body, answer)
    return answer


@pytest.mark.parametrize("split", [False, True])
async def test_a_whole_answer_has_its_tokens_and_its_first_content(stand_in_engine: Any, split: bool) -> None:
    answer = await asked(stand_in_engine(), delay_ms=150, pace_ms=100, chunks=3, completion_tokens=64, split=split)
    assert (answer.outcome, answer.tokens) == ("served", 64)
    assert answer.ttft is not None
    assert answer.seconds is not None
    assert 0.25 <= answer.ttft < answer.seconds - 0.15


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ({"die_after": 2}, "failed"),
        ({"error_after": 2}, "failed"),
        ({"no_finish": True}, "failed"),
        ({"status": 500}, "failed"),
        ({"status": 503}, "refused"),
        ({"error_frame_first": True}, "refused"),
    ],
)
async def test_what_is_no_whole_answer_is_not_useful(stand_in_engine: Any, script: dict[str, Any], outcome: str) -> None:
    answer = await asked(stand_in_engine(), **script)
    assert answer.outcome == outcome
    assert answer.reason.startswith(f"{outcome}: {script.get('status', 200)}")
    assert figures(of([answer], seconds=1.0), TARGETS_MS).useful_tokens == 0


async def test_a_call_that_is_not_over_in_time_is_cut_and_hung_up(stand_in_engine: Any) -> None:
    engine: StandInEngine = stand_in_engine()
    answer = Answer("free", 0.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(engine.port, hanging(engine), answer), 0.3)
    assert answer.outcome == "cut"
    await asyncio.to_thread(engine.wait_for, lambda journal: journal["running"] == 0)


def hanging(engine: StandInEngine) -> bytes:
    body = json.dumps({"model": engine.model, "messages": [], "stream": True}).encode()
    head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-engine-script: {"hang": true}\r\n'
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def test_arrivals_are_sent_in_their_time_and_all_answered(stand_in_engine: Any) -> None:
    engine: StandInEngine = stand_in_engine()
    trace = arrivals(1, 40, 1.0)
    played = await play(Target(engine.port, engine.port, {}), trace, 3, seconds=1.0, drain_seconds=5.0)
    assert {answer.outcome for answer in played.answers} == {"served"}
    received = [one["received_ns"] / 1e9 for one in engine.journal()["requests"]]
    took = max(received) - min(received)
    assert took == pytest.approx(trace[-1].at - trace[0].at, abs=0.2)


def test_the_same_seed_is_the_same_traffic_and_classes_have_their_shares() -> None:
    trace = arrivals(7, 50.0, 200.0)
    assert trace == arrivals(7, 50.0, 200.0) != arrivals(8, 50.0, 200.0)
    assert len(trace) == pytest.approx(10_000, rel=0.05)
    for name, share in SHARES.items():
        assert sum(one.class_ == name for one in trace) / len(trace) == pytest.approx(share / 100, abs=0.02)


def test_a_slower_premium_and_fewer_tokens_are_misses() -> None:
    good = figures(of([whole(name, 0.1) for name in SHARES for _ in range(20)], seconds=10.0), TARGETS_MS)
    slow = figures(of([whole(name, 0.9) for name in SHARES for _ in range(20)], seconds=10.5), TARGETS_MS)
    alike = dict.fromkeys(("engine-fifo", "gateway-fifo", "engine-priority", "ours-0", "ours-1", "ours-2"), good)
    assert all(one.is_met for one in judged(alike))
    missed = [one.what for one in judged(alike | {"ours-0": slow, "ours-2": slow}) if not one.is_met]
    assert len(missed) == 6 + 2 + 2
    assert len([what for what in missed if what.startswith("2 reserved")]) == 2


def test_nothing_served_meets_no_criterion_of_speed() -> None:
    none = replace(figures(of([Answer(name, 0.0) for name in SHARES], seconds=10.0), TARGETS_MS), useful_per_second=0.0)
    found = dict.fromkeys(("engine-priority", "ours-0", "ours-1", "ours-2"), none)
    whole_fifo = figures(of([whole("free", 0.1)], seconds=10.0), TARGETS_MS)
    met = [one.what for one in judged(found | {"engine-fifo": whole_fifo, "gateway-fifo": whole_fifo}) if one.is_met]
    assert met == [f"{reserved} reserved: calls refused or failed" for reserved in (0, 1, 2)]


def test_a_call_turned_away_is_a_miss() -> None:
    calls = [whole(name, 0.1) for name in SHARES]
    good = figures(of(calls, seconds=10.0), TARGETS_MS)
    away = figures(of([*calls, Answer("free", 0.0, status=503, seconds=0.1)], seconds=10.0), TARGETS_MS)
    found = dict.fromkeys(("engine-fifo", "gateway-fifo", "engine-priority", "ours-0", "ours-1", "ours-2"), good) | {
        "ours-1": away
    }
    assert [one.what for one in judged(found) if not one.is_met] == ["1 reserved: calls refused or failed"]


def test_what_was_kept_of_a_run_makes_the_same_page(tmp_path: Path) -> None:
    seen = figures(
        of([whole(name, 0.1) for name in SHARES], 9.0, [Sample(15, 1, 16)], {"engine": 9.5, "client": 0.1}), TARGETS_MS
    )
    compared = dict.fromkeys(("engine-fifo", "gateway-fifo", "engine-priority", "ours-0", "ours-1", "ours-2"), seen)
    found = Findings(
        "2026-12-01T00:00:00Z", "2 cores", {"vLLM": "0.32.0"}, Setting(1, 60.0, 120.0, 16, 3, 64, TARGETS_MS),
        capacity={"fcfs": Capacity(16, 4.2, 268.8, 0.09)}, titles={name: name for name in (*compared, "load-1")},
        loads={"load-1": 1.0}, compared=compared, curve={"load-1": seen},
    )  # fmt: skip
    found.save(tmp_path / "run.json")
    kept = Findings.load(tmp_path / "run.json")
    assert kept == found
    written = page(kept, "plots")
    assert "| engine-fifo | 0.10, 0.10 | 0.10, 0.10 | 0.10, 0.10 | 3, 0, 0, 0 | 21.3 |" in written
    assert "| 1x | 1, 0, 100% | 1, 0, 100% | 1, 0, 100% | 0, 0 | 21.3 |" in written
    draw(kept, tmp_path)
    assert {picture.name for picture in tmp_path.glob("*.png")} == {"queue-ttft.png", "queue-load.png"}


def test_a_run_with_refusals_is_kept(tmp_path: Path) -> None:
    """It was lost after 25 minutes: why calls were not served could not be written down."""
    seen = figures(of([whole("pro", 0.1), *2 * [Answer("free", 0.0, status=503, seconds=0.1)]], seconds=9.0), TARGETS_MS)
    found = Findings("", "", {}, Setting(1, 60.0, 120.0, 16, 3, 64, TARGETS_MS), {}, {}, {}, {"ours-0": seen}, {})
    found.save(tmp_path / "run.json")
    [(reason, count)] = Findings.load(tmp_path / "run.json").compared["ours-0"].reasons.items()
    assert (reason.startswith("refused: 503"), count) == (True, 2)


def whole(class_: str, ttft: float) -> Answer:
    return Answer(class_, 0.0, status=200, ttft=ttft, seconds=ttft + 1, tokens=64, is_whole=True)
