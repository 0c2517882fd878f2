"""CSV that a spreadsheet takes for data: formulas, quotes, line ends and times."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.spreadsheet import csv_lines


def written(*values: Any) -> str:
    return list(csv_lines(["c"] * len(values), [values]))[1]


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=x", "＝1+1", "  =cmd|' /C calc'!A0", '=HYPERLINK("http://x")']
)
def test_a_key_named_like_a_formula_is_text(name: str) -> None:
    (row,) = csv.reader(io.StringIO(written(name), newline=""))
    assert row == [f"'{name}"]


@pytest.mark.parametrize(("value", "cell"), [(-1, "-1"), (7, "7"), (True, "true"), (None, ""), ("a-b", "a-b"), ("", "")])
def test_what_is_no_formula_stays_as_it_is(value: Any, cell: str) -> None:
    assert written(value, "x") == f"{cell},x\r\n"


def test_times_are_utc() -> None:
    assert written(datetime(2026, 12, 1, 4, 30, 0, 123_000, UTC)) == "2026-12-01T04:30:00.123Z\r\n"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_any_text_is_one_cell_that_begins_no_formula(text: str) -> None:
    ((cell, after),) = csv.reader(io.StringIO(written(text, "end"), newline=""))
    assert (cell in (text, f"'{text}"), after) == (True, "end")
    assert cell.lstrip(" ")[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")
