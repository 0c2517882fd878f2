"""`docs/engines.md` has the table of breaches as the tests hold it."""

from tests.engine.breaches import BREACHES, Breach
from tests.engine.place import ROOT


def row(name: str, breach: Breach) -> str:
    return f"| `{name}` | {spelled(breach.kinds)} | {breach.what} | {spelled(breach.passed_on)} |"


def spelled(kinds: frozenset[str]) -> str:
    return ", ".join({"vllm": "vLLM", "llamacpp": "llama.cpp"}[kind] for kind in sorted(kinds, reverse=True))


def test_the_page_has_every_breach_and_no_other() -> None:
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    written = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 5]
    assert written == [row(name, breach) for name, breach in BREACHES.items()]
