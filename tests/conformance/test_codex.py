"""Codex CLI itself, with a gateway for its provider."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_responses import script
from tests.conformance.test_responses_failing import BROKEN, WHY
from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town, wait_for
from tests.support.node import ROOT, run
from tests.support.stream import open_holds, settled

pytestmark = pytest.mark.clients


def documented() -> str:
    """The configuration that docs/responses.md gives."""
    page = (ROOT / "docs" / "responses.md").read_text(encoding="utf-8")
    return page.split("```toml\n")[1].split("```")[0]


class Codex:
    """`codex exec` in a folder of its own; `events` are those that it printed."""

    def __init__(self, town: Town, gateway: Running, folder: Path) -> None:
        self.town, self.customer = town, town.key()
        home = folder / "home"
        home.mkdir()
        config = documented().replace("http://127.0.0.1:8080", gateway.url).replace("qwen3-8b", MODEL)
        (home / "config.toml").write_text(f"{config}request_max_retries = 1\nstream_max_retries = 1\n")
        self._folder, self._home = folder, home

    def run(self, prompt: str) -> list[dict[str, Any]]:
        done = run(
            ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", prompt],
            variables={"CODEX_HOME": str(self._home), "GATEWAY_API_KEY": self.customer.token},
            folder=self._folder,
        )
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def verdicts(self) -> list[str]:
        wait_for(lambda: not open_holds(self.town.redis_url))
        return [event.verdict for event in settled(self.town.redis_url, self.customer)]


@pytest.fixture
def codex(shared: Town, tmp_path: Path) -> Codex:
    return Codex(shared, shared.gateway(), tmp_path)


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def items(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["item"] for event in of_type(events, "item.completed") if event["item"]["type"] == kind]


def test_codex_gets_its_answer(codex: Codex, standing_engine: StandInEngine) -> None:
    events = codex.run(script(chunks=5, reasoning=True, cached_tokens=2))
    assert items(events, "agent_message")[0]["text"] == "tok tok tok "
    (turn,) = of_type(events, "turn.completed")
    assert turn["usage"]["output_tokens"] == 5
    assert turn["usage"]["cached_input_tokens"] == 2
    assert codex.verdicts() == ["posted"]
    (request,) = standing_engine.journal()["requests"]
    assert {tool["type"] for tool in request["body"]["tools"]} == {"function", "namespace"}
    assert request["body"]["instructions"].startswith("You are a coding agent")
    assert {item["role"] for item in request["body"]["input"]} == {"user"}


def test_codex_runs_the_command_that_a_model_calls_for(codex: Codex, standing_engine: StandInEngine) -> None:
    arguments = json.dumps({"cmd": "echo fare-$((40 + 2))"})
    events = codex.run(script(tool=True, tool_name="exec_command", tool_arguments=arguments))
    (command,) = items(events, "command_execution")
    assert command["exit_code"] == 0
    assert "fare-42" in command["aggregated_output"]
    assert items(events, "agent_message")[0]["text"] == "tok tok tok "
    assert codex.verdicts() == ["posted", "posted"]
    last = standing_engine.journal()["requests"][-1]["body"]["input"][-1]
    assert last["type"] == "function_call_output"
    assert "fare-42" in json.dumps(last["output"])


@pytest.mark.parametrize("steps", BROKEN)
def test_codex_shows_why_a_stream_broke_and_pays_for_none_of_its_attempts(codex: Codex, steps: dict[str, Any]) -> None:
    events = codex.run(script(**steps))
    (failed,) = of_type(events, "turn.failed")
    assert WHY in failed["error"]["message"]
    assert codex.verdicts() == ["voided", "voided"]


def test_codex_takes_a_400_for_final(codex: Codex) -> None:
    events = codex.run(script(status=400))
    assert of_type(events, "turn.failed")
    assert codex.verdicts() == ["voided"]
