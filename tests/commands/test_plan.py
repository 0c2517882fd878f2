"""`faregate plan`: the tables of docs/sizing.md are what it prints, and what it can't work out it says in a line."""

import re

import orjson
import pytest
from typer.testing import CliRunner

from backends.gpus import GpuUnknown
from gateway.commands import plan
from models.catalogue import ModelUnknown
from models.shapes import ShapeUnknown
from tests.tidy.source import ROOT

DOCUMENT = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"```\n\$ faregate plan (.+)\n((?:.*\n)+?)```", DOCUMENT))
RUNNER = CliRunner()


@pytest.mark.parametrize("line", SHOWN)
def test_the_document_shows_what_is_printed(line: str) -> None:
    printed = RUNNER.invoke(plan.app, line.split())
    assert printed.exit_code == 0
    assert [row.rstrip() for row in printed.stdout.splitlines()] == SHOWN[line].splitlines(), "run it again and paste"


def test_the_document_shows_the_machines_that_people_ask_about() -> None:
    assert [line.split()[1] for line in SHOWN] == ["1xH100", "2xH100", "8xH200", "8xH200", "1xL40S"]


def test_each_way_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    line = "--gpus 8xH200 --models gpt-oss-120b,qwen3-235b-a22b-instruct-2507,deepseek-v4-flash"
    shown = re.sub(r"\x1b\[[0-9]*m", "", RUNNER.invoke(plan.app, line.split()).stdout).splitlines()
    rows = [row for row in shown if re.match(r"[ *]  (bf16|fp8|mxfp4) ", row)]
    assert len(rows) == 16
    assert max(map(len, rows)) <= 80


def test_json_has_the_bytes() -> None:
    found = orjson.loads(
        RUNNER.invoke(
            plan.app, ["--gpus", "8xH200", "--models", "deepseek-r1-671b", "--kv", "fp8", "--draft", "1B", "--json"]
        ).stdout
    )
    assert [(way["precision"], way["tensor_parallel"]) for way in found["ways"]["deepseek-r1"]] == [
        ("fp8", size) for size in (1, 2, 4, 8)
    ]
    placed = found["placed"]["deepseek-r1"]
    assert (placed["replicas"], placed["gpus"], placed["draft_bytes"]) == (1, 8, 2 * 10**9)
    assert placed["cache"]["token_bytes"] == 40_016
    assert (found["left_out"], found["idle_gpus"]) == ([], 0)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("--gpus 8xV100 --models qwen3-8b", GpuUnknown),
        ("--gpus 8xH100 --models qwen3-8x", ModelUnknown),
        ("--gpus 8xH100 --models bge-m3", ShapeUnknown),
    ],
)
def test_what_is_not_known_is_refused(line: str, what: type[Exception]) -> None:
    refused = RUNNER.invoke(plan.app, line.split())
    assert refused.exit_code == 1
    assert isinstance(refused.exception, what)


@pytest.mark.parametrize("wrong", ["--gpus 0xH100", "--kv int8", "--draft 1", "--draft many", "--context 0"])
def test_a_line_that_cannot_be_understood_is_said_so(wrong: str) -> None:
    line = {"--gpus": "8xH100", "--models": "qwen3-8b"} | {wrong.split()[0]: wrong.split()[1]}
    assert RUNNER.invoke(plan.app, [word for pair in line.items() for word in pair]).exit_code in (1, 2)
