"""Every rule of the clients and every public failure has a test here that exists, or a reason why there is none."""

import ast
import re
import tomllib
from collections import Counter
from typing import Any

import pytest

from tests.tidy.source import ROOT, tree

ENTRIES: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/conformance/public_reports.toml").read_text(encoding="utf-8"))[
    "entry"
]
RULES = 25
REPORT = re.compile(r"^([\w.-]+/)?[\w.-]+#\d+$")
REASON_WORDS_MIN = 6


def title(entry: dict[str, Any]) -> str:
    return f"rule {entry['rule']}" if "rule" in entry else " ".join(entry["reports"])


def test_each_rule_has_its_entry_and_each_report_one() -> None:
    assert [entry["rule"] for entry in ENTRIES if "rule" in entry] == list(range(1, RULES + 1))
    reports = [report for entry in ENTRIES for report in entry.get("reports", [])]
    assert [report for report, count in Counter(reports).items() if count > 1] == []
    assert [report for report in reports if not REPORT.match(report)] == []
    assert len(reports) > 130


@pytest.mark.parametrize("entry", ENTRIES, ids=title)
def test_an_entry_names_tests_that_exist_or_a_reason(entry: dict[str, Any]) -> None:
    assert set(entry) in [{place, "happened", way} for place in ("rule", "reports") for way in ("tests", "not_ours")]
    assert len(entry["happened"].split()) >= 4
    if "not_ours" in entry:
        assert "rule" not in entry
        assert len(entry["not_ours"].split()) >= REASON_WORDS_MIN
        return
    assert entry["tests"]
    missing = [named for named in entry["tests"] if not exists(*named.split("::"))]
    assert missing == []


def exists(path: str, function: str) -> bool:
    """Whether pytest would collect it."""
    file = ROOT / path
    if not (file.name.startswith("test_") and file.is_file() and function.startswith("test_")):
        return False
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function for node in tree(file).body)
