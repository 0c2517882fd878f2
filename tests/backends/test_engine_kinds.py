"""What each kind of engine says of itself, from recordings of real ones and, where none could be run, from their own words."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.engines.kinds import ENGINE_KINDS
from backends.engines.page import table
from backends.engines.report import Report, read_report
from gateway.local.llamacpp import LlamaCpp
from gateway.local.ports import free_port
from tests.support.gateway import ROOT

RECORDINGS = Path(__file__).parents[1] / "recordings"

# Not recorded: put together from the source of 0.5.23, with two ranks of a tensor-parallel engine that tell the same.
SGLANG = b"""
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 4.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 4.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",tp_rank="0"} 3.0
sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0"} 0.25
sglang:num_running_reqs_total 100
"""
# The same with --enable-priority-scheduling: one of all, under an empty label, and one for each priority.
SGLANG_PRIORITIES = b"""
sglang:num_running_reqs{priority="",tp_rank="0"} 14.0
sglang:num_running_reqs{priority="-1",tp_rank="0"} 5.0
sglang:num_running_reqs{priority="40",tp_rank="0"} 9.0
sglang:num_queue_reqs{priority="",tp_rank="0"} 2.0
sglang:num_queue_reqs{priority="40",tp_rank="0"} 2.0
"""
SGLANG_DATA_PARALLEL = b"""
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 4.0
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 4.0
sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 2.0
sglang:token_usage{dp_rank="0"} 0.25
sglang:token_usage{dp_rank="1"} 0.75
"""
# Not recorded: by tensorrt_llm/metrics/collector.py (050f80d), whose gauges carry the process that wrote them.
TRTLLM = b"""
trtllm_num_requests_running{engine_type="trtllm",model_name="m",pid="41"} 8.0
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m",pid="41"} 1.0
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m",pid="41"} 0.5
trtllm_num_requests_completed_total{engine_type="trtllm",model_name="m"} 900.0
"""
# Not recorded: by docs/source/reference/metrics.md (53fdbe6).
TGI = b"""
tgi_batch_current_size 4
tgi_queue_size 7
tgi_batch_inference_count{method="prefill"} 10
tgi_batch_inference_count{method="decode"} 300
"""


@pytest.mark.parametrize(
    ("kind", "page", "says"),
    [
        ("sglang", SGLANG, Report(running=4, waiting=3, kv_use=0.25)),
        ("sglang", SGLANG_PRIORITIES, Report(running=14, waiting=2)),
        ("sglang", SGLANG_DATA_PARALLEL, Report(running=6, kv_use=0.75)),
        ("trtllm", TRTLLM, Report(running=8, waiting=1, kv_use=0.5)),
        ("tgi", TGI, Report(running=4, waiting=7, steps=310)),
    ],
)
def test_what_an_engine_says_that_could_not_be_run(kind: str, page: bytes, says: Report) -> None:
    assert read_report(page, ENGINE_KINDS[kind].gauges) == says


def test_every_name_of_an_engine_that_was_run_is_on_the_page_that_was_recorded() -> None:
    for kind in ("vllm", "llamacpp"):
        page, gauges = (RECORDINGS / kind / "metrics.txt").read_text(), ENGINE_KINDS[kind].gauges
        names = (gauges.running, gauges.waiting, gauges.kv_use, gauges.preemptions, gauges.steps)
        for name in filter(None, names):
            assert any(line.startswith((f"{name}{{", f"{name} ")) for line in page.splitlines()), name


def test_the_page_of_the_docs_is_what_the_code_says() -> None:
    assert table() in (ROOT / "docs" / "engines.md").read_text(encoding="utf-8"), "run: python -m backends.engines.page"


@pytest.fixture(scope="module")
def llamacpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real one, as `make up` starts it."""
    engine = LlamaCpp(tmp_path_factory.mktemp("llamacpp"), free_port())
    process = engine.start()
    try:
        yield f"http://127.0.0.1:{engine.port}"
    finally:
        engine.stop(process)


def test_a_real_llamacpp_has_the_pages_that_its_kind_names(llamacpp: str) -> None:
    kind = ENGINE_KINDS["llamacpp"]
    assert kind.metrics_path is not None
    before = read_report(_get(llamacpp, kind.metrics_path), kind.gauges)
    assert (before.running, before.waiting) == (0, 0)
    assert [model["object"] for model in json.loads(_get(llamacpp, kind.models_path))["data"]] == ["model"]
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}).encode()
    asked = urllib.request.Request(f"{llamacpp}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200
    after = read_report(_get(llamacpp, kind.metrics_path), kind.gauges)
    assert before.steps is not None
    assert after.steps is not None
    assert after.steps > before.steps


def _get(url: str, path: str) -> bytes:
    with urllib.request.urlopen(url + path, timeout=5) as answer:
        found: bytes = answer.read()
    return found
