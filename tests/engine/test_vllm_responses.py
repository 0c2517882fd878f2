"""A gateway in front of vLLM: what Codex sends, and what vLLM alone would refuse or call by another name."""

from typing import Any

import httpx2
import orjson
import pytest

from tests.engine.vllm import CHAT
from tests.recordings.calls_responses import CODEX, CUSTOM, NAMESPACE, says
from tests.support.gateway import Town

pytestmark = pytest.mark.engine
GRAMMAR = {**CUSTOM, "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}
ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
READ = "mcp__notes__read_note"


def events(town: Town, **changes: Any) -> list[dict[str, Any]]:
    body = {**CODEX, "model": CHAT, "stream": True, **changes}
    answer = httpx2.post(f"{town.gateway().url}/v1/responses", json=body, headers=town.key().headers, timeout=120)
    assert answer.status_code == 200, answer.text
    return [orjson.loads(frame.partition("data: ")[2]) for frame in answer.text.split("\n\n") if "data: " in frame]


def test_a_turn_of_codex_is_answered_with_tools_that_vllm_would_refuse(faregate: Town) -> None:
    tools = [*CODEX["tools"], GRAMMAR, {"type": "never_heard_of"}]
    told = events(faregate, input=[*CODEX["input"], ENCRYPTED, says("Go on.")], tools=tools)
    assert told[0]["type"] == "response.created"
    assert {tool["type"] for tool in told[0]["response"]["tools"]} == {"function", "namespace", "custom"}
    assert told[0]["response"]["instructions"] == "You are a coding agent.\n\nUse the shell."
    assert told[-1]["type"] in ("response.completed", "response.incomplete")


def test_a_cut_answer_is_incomplete(faregate: Town) -> None:
    *_, last = events(faregate, input="Tell me a long story.", tools=[], tool_choice="none", max_output_tokens=4)
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_function_of_a_namespace_is_called_by_its_own_name(faregate: Town) -> None:
    told = events(
        faregate,
        input="Read my note.",
        tools=[NAMESPACE],
        tool_choice={"type": "function", "name": READ},
        reasoning=None,
        max_output_tokens=60,
    )
    called = next(event["item"] for event in told if event["type"] == "response.output_item.added")
    assert (called["type"], called["namespace"], called["name"]) == ("function_call", "mcp__notes", "read_note")
