"""How a replica's own reports move the number of calls that it is given."""

from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.capacity import Capacity
from backends.engines.kinds import ENGINE_KINDS
from backends.engines.report import Report, read_report
from backends.fleet import Replica
from backends.saturation import STALE_SECONDS, Saturation, after_report

RECORDINGS = Path(__file__).resolve().parents[1] / "recordings"
BUSY, CALM = Report(running=10, waiting=4), Report(running=10, waiting=0)


def caps(start: Saturation, slots: int, *reports: Report) -> list[int]:
    found, now = [], start
    for report in reports:
        now = after_report(now, slots, report)
        found.append(now.cap)
    return found


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("llamacpp", Report(running=4, waiting=2, steps=6)),
        ("vllm", Report(running=16, waiting=4, kv_use=0.0440771349862259, preemptions=0, steps=2845)),
    ],
)
def test_what_an_engine_of_this_kind_says(kind: str, says: Report) -> None:
    """Recorded from vLLM 0.32 with 16 sequences and 20 requests, and from llama.cpp with 4 slots and 6."""
    page = (RECORDINGS / kind / "metrics.txt").read_bytes()
    assert read_report(page, ENGINE_KINDS[kind].gauges) == says


def test_ranks_of_one_engine_add_up_and_the_fullest_cache_counts() -> None:
    page = (
        b'vllm:num_requests_running{engine="0"} 9.0\nvllm:num_requests_running{engine="1"} 7.0\n'
        b'vllm:num_requests_waiting{engine="0"} 3.0\nvllm:num_requests_waiting{engine="1"} 0.0\n'
        b'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 3.0\n'
        b'vllm:kv_cache_usage_perc{engine="0"} 0.4375\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'
        b'vllm:num_preemptions_total{engine="0"} 2.0\nvllm:num_preemptions_created{engine="0"} 1.76e+09\n'
    )
    assert read_report(page, ENGINE_KINDS["vllm"].gauges) == Report(running=16, waiting=3, kv_use=0.75, preemptions=2)


@pytest.mark.parametrize(
    ("line", "waiting"),
    [
        (b"vllm:num_requests_waiting 3", 3),
        (b'vllm:num_requests_waiting{model_name="a } b{c"} 3.0 1764072000000\n', 3),
        (b"vllm:num_requests_waiting{} NaN", None),
        (b"vllm:num_requests_waiting{} +Inf", None),
        (b"vllm:num_requests_waiting", None),
        (b"vllm:num_requests_waiting{", None),
        (b"# vllm:num_requests_waiting 3", None),
        (b"other_vllm:num_requests_waiting 3", None),
        (b"vllm:num_requests_waiting -1", None),
        (b"", None),
    ],
)
def test_a_line_of_a_page(line: bytes, waiting: int | None) -> None:
    assert read_report(line, ENGINE_KINDS["vllm"].gauges) == Report(waiting=waiting)


@given(st.binary(max_size=300))
def test_no_page_is_too_strange(noise: bytes) -> None:
    page = noise + b"\nvllm:num_requests_running 5\n" + noise
    found = read_report(page, ENGINE_KINDS["vllm"].gauges)
    assert found.running is not None
    assert found.running >= 5


def test_requests_that_wait_for_once_are_no_sign() -> None:
    assert caps(Saturation(20), 20, BUSY, CALM, BUSY) == [20, 20, 20]


def test_an_engine_that_keeps_requests_waiting_gets_as_many_as_it_runs() -> None:
    assert caps(Saturation(20), 20, *[BUSY] * 7) == [20, 16, 12, 10, 10, 10, 10]


def test_what_stands_in_the_line_that_the_engine_is_allowed_is_no_sign() -> None:
    found = Saturation(19)
    for waiting in (3, 3, 3, 2):
        found = after_report(found, 19, Report(running=16, waiting=waiting), line=3)
    assert found.cap == 19
    for _ in range(3):  # nor where it runs fewer than it could
        found = after_report(found, 19, Report(running=9, waiting=3), line=3)
    assert found.cap == 19
    for _ in range(4):
        found = after_report(found, 19, Report(running=12, waiting=7), line=3)
    assert found.cap == 12 + 3


def test_memory_taken_from_running_requests_tightens_at_once() -> None:
    first = Report(running=8, waiting=0, preemptions=5)
    assert caps(Saturation(10), 10, first, first, Report(running=8, waiting=0, preemptions=6)) == [10, 10, 8]
    after_restart = Report(running=0, waiting=0, preemptions=0)
    assert caps(Saturation(5, preemptions=9), 10, after_restart) == [6]


def test_a_full_cache_tightens_and_a_filled_one_holds() -> None:
    assert caps(Saturation(10), 10, Report(kv_use=0.96), Report(kv_use=0.97), Report(kv_use=0.85)) == [8, 6, 6]


def test_it_recovers_step_by_step_and_never_past_its_slots() -> None:
    assert caps(Saturation(8), 64, *[CALM] * 16)[:3] == [12, 16, 20]
    assert caps(Saturation(8), 64, *[CALM] * 16)[-2:] == [64, 64]
    assert caps(Saturation(1), 4, *[CALM] * 4) == [2, 3, 4, 4]


def test_a_stale_report_or_an_empty_one_freezes_the_cap() -> None:
    tight = Saturation(3, had_waiting=True)
    assert after_report(tight, 10, BUSY, STALE_SECONDS + 0.1) is tight
    assert after_report(tight, 10, CALM, STALE_SECONDS + 0.1) is tight
    assert after_report(tight, 10, Report()) is tight


reports = st.builds(
    Report,
    running=st.none() | st.integers(0, 500),
    waiting=st.none() | st.integers(0, 500),
    kv_use=st.none() | st.floats(0, 1.2),
    preemptions=st.none() | st.integers(0, 20),
)


@given(st.integers(1, 256), st.lists(reports, max_size=40))
def test_the_cap_is_never_under_one_or_over_the_slots(slots: int, said: list[Report]) -> None:
    for report in said:
        assert 1 <= after_report(Saturation(slots), slots, report).cap <= slots
    end = reduce(lambda now, report: after_report(now, slots, report), said, Saturation(slots))
    assert 1 <= end.cap <= slots
    recovered = reduce(lambda now, _: after_report(now, slots, CALM), range(slots + 1), end)
    assert recovered.cap == slots


def test_only_a_tightened_replica_is_listed_as_one() -> None:
    clock = [0.0]
    capacity = Capacity(lambda: clock[0])
    replica = Replica.at("http://127.0.0.1:1", name="a", model="m", engine=ENGINE_KINDS["vllm"], slots=10)
    assert capacity.report_age(replica) == float("inf")
    capacity.reported(replica, BUSY, 0.1)
    assert capacity.tightened == {}
    capacity.reported(replica, BUSY, 0.1)
    assert capacity.tightened == {}  # it runs as many as it may
    capacity.reported(replica, Report(running=4, waiting=9), 0.1)
    assert capacity.tightened == {"a": 8}
    clock[0] = 30.0
    capacity.reported(replica, CALM, STALE_SECONDS + 1)
    assert (capacity.tightened, capacity.report_age(replica)) == ({"a": 8}, 30.0)
    for _ in range(2):
        capacity.reported(replica, CALM, 0.1)
    assert (capacity.tightened, capacity.report_age(replica)) == ({}, 0.0)
