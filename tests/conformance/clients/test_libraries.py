"""Each library's snippet as the docs have it: one prompt, one fare, and what it does when a call fails."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.clients.counting import Counted
from tests.conformance.clients.libraries import AGENTS, LANGCHAIN, LANGCHAIN_JS, LIBRARIES, LLAMAINDEX, Library
from tests.conformance.clients.limits import another_stream, ask, one_a_day, one_at_once
from tests.conformance.clients.programs import Machine
from tests.conformance.test_responses import script
from tests.conformance.test_responses_failing import BROKEN, WHY
from tests.support.gateway import Customer, Town

pytestmark = pytest.mark.clients
TEXT = "tok tok tok"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
Counting = Callable[[Customer], Counted]

each = pytest.mark.parametrize("library", LIBRARIES, ids=str)


@pytest.fixture
def counts(installation: Town, counted: Counting) -> Counted:
    return counted(installation.key())


@each
def test_the_snippet_prints_its_answer_at_one_fare(library: Library, machine: Machine, counts: Counted) -> None:
    done = library.run(machine, counts)
    assert (done.returncode, done.stdout.strip()) == (0, TEXT), done.stderr
    assert counts.arrivals() == 1
    assert counts.verdicts() == ["posted"]
    assert counts.paths() == [PATHS[library.row["sends to"]]]


@each
def test_an_error_in_the_request_is_said_once(library: Library, machine: Machine, counts: Counted) -> None:
    done = library.run(machine, counts, script(status=400))
    assert done.returncode != 0
    assert "as the script says" in done.stdout + done.stderr
    assert counts.arrivals() == int(library.row["calls after a 400"])
    assert set(counts.verdicts()) == {"voided"}


@each
def test_a_busy_engine_is_asked_as_often_as_the_table_says_and_costs_nothing(
    library: Library, machine: Machine, counts: Counted
) -> None:
    expected = library.row["calls when all is busy (503, 529)"]
    if library is LANGCHAIN_JS:
        with pytest.raises(subprocess.TimeoutExpired):
            library.run(machine, counts, script(status=503))
        assert 2 < counts.arrivals() <= int(expected.removeprefix("up to ").split(",")[0])
    else:
        done = library.run(machine, counts, script(status=503))
        assert done.returncode != 0
        assert "All GPUs for this model are busy." in done.stdout + done.stderr
        assert counts.arrivals() == int(expected)
    assert set(counts.verdicts()) == {"voided"}


@each
def test_a_spent_quota_is_said(library: Library, machine: Machine, installation: Town, counted: Counting) -> None:
    counts = counted(one_a_day(installation))
    ask(counts)
    done = library.run(machine, counts)
    assert done.returncode != 0
    assert "You have used 1 of 1 requests today" in done.stdout + done.stderr
    assert counts.arrivals() == 1 + int(library.row["calls when the quota is spent"])
    assert counts.verdicts() == ["posted"]


@each
def test_a_limit_that_ends_in_seconds_is_waited_out(
    library: Library, machine: Machine, installation: Town, counted: Counting
) -> None:
    counts = counted(one_at_once(installation))
    with another_stream(counts):
        done = library.run(machine, counts)
    assert (done.returncode, done.stdout.strip()) == (0, TEXT), done.stderr
    assert counts.verdicts() == ["posted", "posted"]


@pytest.mark.parametrize("library", [library for library in LIBRARIES if library is not AGENTS], ids=str)
@pytest.mark.parametrize("steps", BROKEN[:2], ids=["cut", "frame"])
def test_a_stream_that_breaks_is_an_error_and_costs_nothing(
    library: Library, machine: Machine, counts: Counted, steps: dict[str, Any]
) -> None:
    """The Agents SDK's snippet doesn't stream."""
    done = library.run(machine, counts, script(**steps))
    assert done.returncode != 0
    assert WHY in done.stdout + done.stderr
    assert set(counts.verdicts()) == {"voided"}
    assert counts.arrivals() == 1


@pytest.mark.parametrize("library", [LANGCHAIN, LLAMAINDEX], ids=str)
def test_two_texts_are_embedded_at_one_fare(library: Library, machine: Machine, counts: Counted) -> None:
    done = library.run(machine, counts, which=1)
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr
    assert counts.arrivals() == 1
    assert counts.verdicts() == ["posted"]
