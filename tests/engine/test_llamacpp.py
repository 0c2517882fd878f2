"""llama.cpp as `make up` starts it: it answers what was recorded of it, and breaks the same rules and no other."""

import pytest

from gateway.local.llamacpp import LlamaCpp
from tests.engine.answers import Answers, answers
from tests.engine.breaches import BREACHES
from tests.recordings.recording import recorded

pytestmark = pytest.mark.xdist_group("llamacpp")

# Few words each; the others were recorded from the same engine.
CASES = (
    "chat-length", "chat-length-stream", "chat-n2", "chat-n2-stream", "chat-stop", "chat-stop-stream", "chat-ends-stream",
    "chat-stream-usage-off", "chat-json-schema", "chat-logprobs-stream", "chat-developer", "chat-parts",
    "chat-wrong-json", "chat-wrong-no-messages", "chat-wrong-temperature", "chat-wrong-image", "chat-too-long",
    "chat-wrong-model", "completions-plain", "completions-plain-stream", "completions-many", "completions-too-long",
    "responses-incomplete", "responses-incomplete-stream", "responses-codex", "responses-wrong-item",
    "responses-previous-unknown",
    "messages-ends", "messages-ends-stream", "messages-stop", "messages-stop-stream", "messages-coding-agent-stream",
    "messages-count", "messages-count-tools", "messages-too-long", "messages-wrong-json",
    "chat-engine-embeddings", "chat-engine-rerank", "free-no-such-path",
)  # fmt: skip
# Seen where it was started with a template that knows tools.
WITH_TOOLS = {"blocks-overlap", "event-unnamed", "no-done", "terminal-event-missing"}


@pytest.fixture(scope="module")
def answered(llamacpp: LlamaCpp) -> Answers:
    return answers(llamacpp.url, CASES, at_once=4)


def test_every_call_has_the_status_that_was_recorded(answered: Answers) -> None:
    assert answered.statuses() == {case: recorded("llamacpp", case).answer.status for case in CASES}


def test_it_breaks_the_rules_that_are_written_down_and_no_other(answered: Answers) -> None:
    found = answered.broken()
    known = {name for name, breach in BREACHES.items() if "llamacpp" in breach.kinds} - WITH_TOOLS
    assert {name: where for name, where in found.items() if name not in known} == {}
    assert known - found.keys() == set()
