"""docs/edits.md says what the code does: it is written from the table, and each row of the table names code that is there."""

import importlib
from operator import attrgetter

import pytest

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.edit_page import page
from gateway.api.edit_table import SECTIONS, Edit
from gateway.api.edits import ENGINE_ONLY
from tests.tidy.source import ROOT

EDITS = [edit for _, edits in SECTIONS for edit in edits]


def test_the_page_is_what_the_table_says() -> None:
    assert (ROOT / "docs" / "edits.md").read_text(encoding="utf-8") == page(), (
        "run: python -m gateway.api.edit_table > docs/edits.md"
    )


@pytest.mark.parametrize("edit", EDITS, ids=[edit.by for edit in EDITS])
def test_each_edit_names_its_code_and_its_engines(edit: Edit) -> None:
    module, _, thing = edit.by.partition(".")
    assert attrgetter(thing)(importlib.import_module(f"gateway.api.{module}")) is not None
    assert set(edit.kinds) <= ENGINE_KINDS.keys()
    assert "|" not in "".join((edit.what, edit.edit, edit.why))


def test_every_field_that_is_removed_is_named() -> None:
    text = page()
    assert [field for field in ENGINE_ONLY if f"`{field}`" not in text] == []
