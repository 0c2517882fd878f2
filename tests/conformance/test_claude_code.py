"""Claude Code itself, with a gateway for its API."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_messages import MESSAGES
from tests.conformance.test_responses import script
from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town, wait_for
from tests.support.node import SCRIPTS, run
from tests.support.stream import open_holds, settled

pytestmark = pytest.mark.clients
# npm runs no install script of its package unasked; its launcher finds the program without.
LAUNCHER = SCRIPTS / "node_modules" / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"


class ClaudeCode:
    """`claude -p` in a folder of its own."""

    def __init__(self, town: Town, gateway: Running, folder: Path, plan: str = "enterprise") -> None:
        self.town, self.customer = town, town.key(plan)
        self._folder = folder
        self._variables = {
            "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / "config"), "ANTHROPIC_BASE_URL": gateway.url,
            "ANTHROPIC_AUTH_TOKEN": self.customer.token, "ANTHROPIC_MODEL": MODEL,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip

    def run(self, prompt: str, *options: str) -> dict[str, Any]:
        done = run(
            ["node", str(LAUNCHER), "-p", prompt, "--output-format", "json", *options],
            variables=self._variables,
            folder=self._folder,
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def verdicts(self) -> list[str]:
        wait_for(lambda: not open_holds(self.town.redis_url))
        return [event.verdict for event in settled(self.town.redis_url, self.customer)]


@pytest.fixture
def claude(shared: Town, tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(shared, shared.gateway(), tmp_path)


def test_claude_code_gets_its_answer(claude: ClaudeCode, standing_engine: StandInEngine) -> None:
    found = claude.run(script(chunks=6, reasoning=True, cached_tokens=2))
    assert found["result"] == "tok tok tok "
    assert (found["usage"]["output_tokens"], found["usage"]["cache_read_input_tokens"]) == (6, 2)
    assert claude.verdicts() == ["posted"]
    (request,) = standing_engine.journal()["requests"]
    assert request["path"] == MESSAGES
    assert "x-anthropic-billing-header" not in json.dumps(request["body"])
    assert {message["role"] for message in request["body"]["messages"]} == {"user", "system"}


def test_claude_code_runs_the_command_that_a_model_calls_for(claude: ClaudeCode, standing_engine: StandInEngine) -> None:
    arguments = json.dumps({"command": "echo fare-$((40 + 2))", "description": "adds"})
    found = claude.run(script(tool=True, tool_name="Bash", tool_arguments=arguments), "--allowedTools", "Bash(echo:*)")
    assert found["result"] == "tok tok tok "
    assert claude.verdicts() == ["posted", "posted"]
    results = standing_engine.journal()["requests"][-1]["body"]["messages"]
    assert any("fare-42" in json.dumps(message) for message in results)


def test_claude_code_is_told_once_that_the_quota_is_spent(shared: Town, tmp_path: Path) -> None:
    plan = f"one{shared.key().account_id}"
    shared.plan(plan, quota_per_day=1)
    claude = ClaudeCode(shared, shared.gateway(), tmp_path, plan)
    assert claude.run("hi")["result"] == "tok tok tok "
    found = claude.run("hi")
    assert found["is_error"]
    assert "You have used 1 of 1 requests today" in found["result"]
    assert claude.verdicts() == ["posted"]


def test_claude_code_waits_through_pings(shared: Town, tmp_path: Path) -> None:
    claude = ClaudeCode(shared, shared.gateway(commit_seconds=0.1), tmp_path)
    assert claude.run(script(delay_ms=500))["result"] == "tok tok tok "
