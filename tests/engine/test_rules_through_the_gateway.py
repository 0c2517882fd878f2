"""Recorded calls again, through the gateway: of the rules that clients count on, those alone are broken that are passed on."""

from collections.abc import Iterator

import pytest

from gateway.local.llamacpp import MODEL, LlamaCpp
from tests.engine import test_llamacpp
from tests.engine.answers import Answers, answers
from tests.engine.breaches import BREACHES
from tests.recordings.calls import CALLS
from tests.support.gateway import Town, town
from tests.support.services import PostgresServer, running_valkey

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def of_vllm(faregate: Town) -> Answers:
    cases = [case for case in CALLS if not case.startswith(("begun", "rerank", "score"))]
    return answers(faregate.gateway().url, cases, token=faregate.key().token)


@pytest.fixture(scope="module")
def of_llamacpp(
    llamacpp: LlamaCpp,
    postgres_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Answers]:
    """With a Valkey of its own: the other gateway still runs on the session's."""
    fleet = f'[[replica]]\nid = "local"\nmodel = "{MODEL}"\nengine = "llamacpp"\nurl = "{llamacpp.url}"\nslots = 4\n'
    folder = tmp_path_factory.mktemp("llamacpp")
    with (
        postgres_server.database() as url,
        running_valkey() as valkey,
        town(url, valkey.url, folder, fleet) as built,
    ):
        yield answers(built.gateway().url, test_llamacpp.CASES, token=built.key().token, at_once=4)


def test_in_front_of_vllm_what_is_broken_is_what_is_passed_on(of_vllm: Answers) -> None:
    assert unexpected(of_vllm, "vllm") == {}
    assert passed_on("vllm") - of_vllm.broken().keys() == set()


def test_in_front_of_llamacpp_what_is_broken_is_what_is_passed_on(of_llamacpp: Answers) -> None:
    assert unexpected(of_llamacpp, "llamacpp") == {}
    assert passed_on("llamacpp") - of_llamacpp.broken().keys() == set()


def test_a_call_is_answered_or_refused_as_a_client_can_mend(of_vllm: Answers, of_llamacpp: Answers) -> None:
    """400 is for what is wrong with the call, 404 and 405 for a model or page that is not here."""
    for found in (of_vllm, of_llamacpp):
        assert {case: status for case, status in found.statuses().items() if status not in (200, 400, 404, 405)} == {}


def passed_on(kind: str) -> set[str]:
    return {name for name, breach in BREACHES.items() if kind in breach.passed_on}


def unexpected(found: Answers, kind: str) -> dict[str, list[str]]:
    return {name: where for name, where in found.broken().items() if name not in passed_on(kind)}
