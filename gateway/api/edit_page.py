"""docs/edits.md, written from the table of edits: `python -m gateway.api.edit_page > docs/edits.md`."""

import sys
from collections.abc import Iterator, Sequence

from gateway.api.edit_table import SECTIONS, Edit

_PREFACE = """\
# What we change on the way

Engines speak OpenAI already, so a request is parsed once and written again, and answers are relayed as they come. These are all
our edits; everything else, unknown fields too, passes. Where engines are named, theirs alone have shown the need. An edit of an
answer is made where its cause stands, and all other bytes pass as they came: `tests/api/test_relay_bytes.py` plays recordings of
real engines.

Written by `python -m gateway.api.edit_page`, from the table that names the code of each.
"""


def page() -> str:
    return _PREFACE + "".join(text for title, edits in SECTIONS for text in _section(title, edits))


def _section(title: str, edits: Sequence[Edit]) -> Iterator[str]:
    yield f"\n## {title}\n\n| what | edit | why | engines |\n| --- | --- | --- | --- |\n"
    for edit in edits:
        yield f"| {edit.what} | {edit.edit} | {edit.why} | {', '.join(edit.kinds)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
