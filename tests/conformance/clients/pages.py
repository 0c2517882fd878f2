"""The snippets and the table of docs/clients.md and docs/clients/, as they stand there."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.conftest import MODEL

ROOT = Path(__file__).resolve().parents[3]
PROMPT = "Tell me a joke."
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Snippet:
    """One block of code of a page."""

    language: str
    text: str

    def told(self, url: str, key: str, *prompt: str) -> str:
        """With the address, key and model of an installation under test, and another prompt where one is given: for a shell, as
        so many arguments."""
        text = self.text.replace("http://127.0.0.1:8080", url).replace("fare_live_...", key).replace("qwen3-8b", MODEL)
        words = prompt or (PROMPT,)
        return text.replace(json.dumps(PROMPT), shlex.join(words) if self.language == "sh" else json.dumps(" ".join(words)))


def headings(page: str) -> list[str]:
    return re.findall(r"^## (.+)$", _read(page), re.MULTILINE)


def snippets(page: str, heading: str) -> list[Snippet]:
    """Those under one heading of a page in docs/."""
    _, found, rest = _read(page).partition(f"\n## {heading}\n")
    assert found, f"docs/{page} has no heading {heading!r}"
    return [Snippet(*match) for match in _FENCE.findall(rest.partition("\n## ")[0])]


def rows(page: str, first_column: str) -> dict[str, dict[str, str]]:
    """The table whose first column has this name: its rows by their first cell."""
    lines = iter(_read(page).splitlines())
    names = next(_cells(line) for line in lines if line.startswith(f"| {first_column} |"))
    next(lines)
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = _cells(line)
        found[cells[0]] = dict(zip(names, cells, strict=True))
    return found


def _read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
