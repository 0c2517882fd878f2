"""`faregate models`: readable on terminals of both widths, whole for machines, and each fact with where it is from."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from gateway.commands import models
from models.catalogue import Catalogue, ModelUnknown
from tests.tidy.source import ROOT

CATALOGUE = Catalogue.load()
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """No server is behind these."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setenv("FAREGATE_KEY_PEPPER", "p" * 32)

    def typed(line: str, *, code: int = 0, **environment: str) -> Result:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        result = CliRunner().invoke(models.app, line.split())
        assert result.exit_code == code, (line, result.output, result.exception)
        return result

    return typed


def answer(result: Result) -> Any:
    return orjson.loads(result.stdout)


@pytest.mark.parametrize(("columns", "last"), [("80", "Context"), ("140", "May be sold")])
def test_on_a_terminal_each_model_is_one_line(run: Run, columns: str, last: str) -> None:
    shown = run("list --all", COLUMNS=columns, TTY_COMPATIBLE="1", NO_COLOR="1").stdout.splitlines()
    assert len(shown) == len(CATALOGUE.models) + 1
    assert shown[0].replace("\x1b[1m", "").replace("\x1b[0m", "").rstrip().endswith(last)
    assert max(len(line) for line in shown[1:]) <= int(columns)
    assert any(line.split()[:5] == ["deepseek-r1", "reasoning", "enterprise", "671B/37B", "160K"] for line in shown)


def test_hidden_models_are_counted_and_shown_when_asked_for_or_accepted(run: Run) -> None:
    short = run("list")
    assert "minimax-m2.7" not in short.stdout
    assert f"{len(CATALOGUE.hidden(()))} more" in short.stderr
    assert "minimax-m2.7" in run("list --all").stdout
    assert "minimax-m2.7" in run("list", FAREGATE_ACCEPTED_MODELS="minimax-m2.7").stdout


def test_json_is_whole(run: Run) -> None:
    listed = {model["id"]: model for model in answer(run("list --json"))}
    assert set(listed) == {model.id for model in CATALOGUE.models}
    kimi = listed["kimi-k2.6"]
    assert (kimi["commercial_use"], kimi["inputs"], kimi["hidden"], kimi["served"]) == (
        "conditions",
        ["text", "image"],
        False,
        False,
    )
    assert set(kimi["sources"]) == CATALOGUE.resolve("kimi-k2.6").facts()


def test_one_model_is_shown_with_where_each_fact_is_from(run: Run) -> None:
    found = answer(run("show meta-llama/Llama-3.3-70B-Instruct --json"))
    assert found["id"] == "llama-3.3-70b-instruct"
    assert "Built with Llama" in found["licence_terms"]["conditions"]
    assert found["sources"]["context"]["at"].startswith("https://github.com/vllm-project/recipes/")
    lines = run("show llama-3.3-70b-instruct").stdout.splitlines()
    assert any(line.split()[:2] == ["context", "131,072"] and "vLLM recipes" in line for line in lines)
    assert any(line.startswith("conditions") for line in lines)
    assert not any(line.startswith("retires") for line in lines), "what is not known has no row"


def test_a_model_that_is_none_is_refused_in_a_line_with_those_that_are_near(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    assert isinstance(run("show qwen3-9b", code=1).exception, ModelUnknown)
    assert isinstance(run("list", code=1, FAREGATE_ACCEPTED_MODELS="minimax-m27").exception, ModelUnknown)
    line = [sys.executable, "-m", "gateway.cli", "models", "show", "qwen3-9b"]
    monkeypatch.delenv("FAREGATE_ACCEPTED_MODELS")
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("faregate: There is no model named 'qwen3-9b'. Did you mean")
