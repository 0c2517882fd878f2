"""The libraries of docs/clients.md: where the snippet of each stands, and what runs it."""

from dataclasses import dataclass

from tests.conformance.clients.counting import Counted
from tests.conformance.clients.pages import PROMPT, rows, snippets
from tests.conformance.clients.programs import Done, Machine

TABLE = rows("clients.md", "client")


@dataclass(frozen=True, slots=True)
class Library:
    """`name` is its row of the table, `heading` its place on the page; `environment` is None for Node.js."""

    name: str
    heading: str
    environment: str | None = "python"

    def __str__(self) -> str:
        return self.name

    @property
    def row(self) -> dict[str, str]:
        return TABLE[self.name]

    def run(self, machine: Machine, counts: Counted, prompt: str = PROMPT, *, which: int = 0) -> Done:
        """One snippet of its section, the first unless told, by another prompt where one is given."""
        return self.run_at(machine, counts.gateway.url, counts.customer.token, prompt, which=which)

    def run_at(self, machine: Machine, url: str, key: str, prompt: str = PROMPT, *, which: int = 0) -> Done:
        page = "clients/python.md" if self.environment else "clients/javascript.md"
        text = snippets(page, self.heading)[which].told(url, key, prompt)
        return machine.python(self.environment, text) if self.environment else machine.node(text)


LANGCHAIN, LLAMAINDEX = Library("LangChain", "LangChain"), Library("LlamaIndex", "LlamaIndex", "llamaindex")
LANGCHAIN_JS = Library("LangChain.js", "LangChain.js", None)
AGENTS = Library("OpenAI Agents SDK", "OpenAI Agents SDK")
LIBRARIES = (
    Library("OpenAI SDK, Python", "OpenAI SDK"),
    Library("Anthropic SDK, Python", "Anthropic SDK"),
    LANGCHAIN,
    LLAMAINDEX,
    Library("Pydantic AI", "Pydantic AI"),
    AGENTS,
    Library("LiteLLM", "LiteLLM"),
    Library("OpenAI SDK, Node.js", "OpenAI SDK", None),
    Library("Anthropic SDK, Node.js", "Anthropic SDK", None),
    LANGCHAIN_JS,
    Library("Vercel AI SDK", "Vercel AI SDK", None),
    Library("Vercel AI SDK, OpenAI provider", "Vercel AI SDK, OpenAI provider", None),
)
