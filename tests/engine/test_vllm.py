"""vLLM alone: it answers what was recorded of it, and breaks the same rules and no other."""

import pytest

from tests.engine.answers import Answers, answers
from tests.engine.breaches import BREACHES
from tests.engine.vllm import Vllm
from tests.recordings.calls import CALLS
from tests.recordings.recording import recorded

pytestmark = pytest.mark.engine

VECTOR_CALLS = ("embeddings", "rerank", "score")
# Of another engine, or of a vLLM started with other flags.
ELSEWHERE = ("begun", "reasoning-messages-budget", "reasoning-messages-coding", "messages-thinking")
# Seen only where its core is killed.
BROKEN_OFF = {"terminal-event-missing"}


@pytest.fixture(scope="module")
def chatted(vllm: Vllm) -> Answers:
    return answers(vllm.url, [case for case in CALLS if not case.startswith(VECTOR_CALLS + ELSEWHERE)])


@pytest.fixture(scope="module")
def embedded(vectors: Vllm) -> Answers:
    return answers(vectors.url, [case for case in CALLS if case.startswith(VECTOR_CALLS)])


def test_every_call_has_the_status_that_was_recorded(chatted: Answers, embedded: Answers) -> None:
    found = chatted.statuses() | embedded.statuses()
    assert found == {case: recorded("vllm", case).answer.status for case in found}


def test_it_breaks_the_rules_that_are_written_down_and_no_other(chatted: Answers, embedded: Answers) -> None:
    found = chatted.broken() | {name: where for name, where in embedded.broken().items() if name not in chatted.broken()}
    known = {name for name, breach in BREACHES.items() if "vllm" in breach.kinds} - BROKEN_OFF
    assert {name: where for name, where in found.items() if name not in known} == {}
    assert known - found.keys() == set()
