"""The pages name every client that is run and no other, in the versions that are installed for the tests."""

import json
import re
from pathlib import Path

from tests.conformance.clients.libraries import LIBRARIES, TABLE
from tests.conformance.clients.pages import ROOT, headings, snippets
from tests.conformance.clients.test_programs import PROGRAMS

LOCKS = Path(__file__).with_name("locks")
PACKAGES = {
    "OpenAI SDK, Python": "openai", "Anthropic SDK, Python": "anthropic", "LangChain": "langchain-openai",
    "LlamaIndex": "llama-index-llms-openai-like", "Pydantic AI": "pydantic-ai-slim", "OpenAI Agents SDK": "openai-agents",
    "LiteLLM": "litellm", "Aider": "aider-chat", "Open WebUI": "open-webui", "OpenAI SDK, Node.js": "openai",
    "Anthropic SDK, Node.js": "@anthropic-ai/sdk", "LangChain.js": "@langchain/openai", "Vercel AI SDK": "ai",
    "Vercel AI SDK, OpenAI provider": "@ai-sdk/openai", "OpenCode": "opencode-ai", "Cline": "cline",
    "Continue": "@continuedev/cli",
}  # fmt: skip


def test_every_client_of_the_table_is_of_the_version_that_is_run() -> None:
    wanted = {name: row["version"] for name, row in TABLE.items()}
    assert wanted == {name: _installed(name) for name in PACKAGES}


def test_every_section_is_one_that_is_run() -> None:
    of = {"clients/python.md": set[str](), "clients/javascript.md": set[str]()}
    for library in LIBRARIES:
        of["clients/python.md" if library.environment else "clients/javascript.md"].add(library.heading)
    of["clients/programs.md"] = {program.name for program in PROGRAMS} | {"Open WebUI"}
    assert {page: set(headings(page)) for page in of} == of


def test_no_snippet_stands_twice() -> None:
    pages = ("clients/python.md", "clients/javascript.md", "clients/programs.md")
    texts = [snippet.text for page in pages for heading in headings(page) for snippet in snippets(page, heading)]
    assert len(texts) == len(set(texts)) >= len(TABLE)


def _installed(name: str) -> str:
    package = PACKAGES[name]
    if not name.endswith("Node.js"):
        for lock in sorted(LOCKS.glob("*.txt"), key=lambda path: path.stem != "python"):
            found = re.search(rf"^{re.escape(package)}==(\S+)$", lock.read_text(encoding="utf-8"), re.MULTILINE)
            if found:
                return found[1]
    manifest = json.loads((ROOT / "tests" / "conformance" / "node" / "package.json").read_text(encoding="utf-8"))
    version: str = manifest["dependencies"][package]
    return version
