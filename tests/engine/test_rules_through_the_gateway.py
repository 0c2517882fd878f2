"""Every recorded call again, through the gateway: no rule that clients count on is broken any more."""

import pytest

from tests.engine.answers import Answers, answers
from tests.recordings.calls import CALLS
from tests.support.gateway import Town

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def answered(faregate: Town) -> Answers:
    cases = [case for case in CALLS if not case.startswith(("begun", "rerank", "score"))]
    return answers(faregate.gateway().url, cases, token=faregate.key().token)


def test_no_rule_is_broken(answered: Answers) -> None:
    assert answered.broken() == {}


def test_a_call_is_answered_or_refused_as_a_client_can_mend(answered: Answers) -> None:
    """400 is for what is wrong with the call, 404 for a model or page that is not here."""
    assert {case: status for case, status in answered.statuses().items() if status not in (200, 400, 404, 405)} == {}
