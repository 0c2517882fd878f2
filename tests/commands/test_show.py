"""Tables as they stand on a terminal and in a pipe: no cell is folded, whatever the width."""

import pytest

from gateway.commands.show import show_table

ID = "01a22f0c-e199-71bd-b27d-e2b5f234560c"


@pytest.mark.parametrize(("terminal", "columns"), [(False, "80"), (True, "80"), (True, "40"), (True, "200")])
def test_an_id_was_folded_over_five_lines(
    terminal: bool, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    if terminal:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
    show_table(("Id", "Name", "Email", "Made"), [(ID, "acme", "ops@acme.example", "2026-12-01 00:41 UTC"), (ID, None, "x", 1)])
    shown = capsys.readouterr().out
    assert shown.count(ID) == 2
    assert "2026-12-01 00:41 UTC" in shown
    is_table = not terminal or columns == "200"
    assert (len(shown.splitlines()) == 3) is is_table, shown


def test_a_month_of_usage_was_a_block_for_each_day(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    show_table(("Day", "Prompt tokens", "Output tokens"), [("2026-12-01 of the calendar", 9, 4)])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert ["tokens" in line for line in shown] == [False, True, False]
