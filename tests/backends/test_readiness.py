"""What calls and probes together say of a replica."""

import pytest

from backends.choose import Standing
from backends.failures import Aborted, EngineUnreachable
from backends.readiness import Readiness
from tests.backends.test_choose import A, B, C, names

FAULT = EngineUnreachable()


class Now:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def readiness(now: Now) -> Readiness:
    return Readiness(now)


def test_whoever_remembers_its_cache_is_told_that_a_replica_fell(now: Now) -> None:
    fell: list[str] = []
    readiness = Readiness(now, fell.append)
    readiness.probed("a", is_healthy=False)  # a long tick, perhaps
    assert fell == []
    readiness.probed("a", is_healthy=False)
    readiness.probed("b", is_healthy=False, is_certain=True)
    assert fell == ["a", "b"]


def break_(readiness: Readiness, name: str) -> None:
    for _ in range(3):
        readiness.called(name, FAULT)


def test_one_that_nobody_heard_of_is_ready(readiness: Readiness) -> None:
    assert readiness.standing("a") is Standing.READY
    assert len(readiness.prefer([A, B], {})) == 2


def test_one_that_fails_its_calls_is_left_alone_then_tried_once_at_a_time(readiness: Readiness, now: Now) -> None:
    break_(readiness, "a")
    assert names(readiness.prefer([A, B], {"b": 9})) == "b"
    now.seconds = 1.0
    assert names(readiness.prefer([A, B], {})) == "ab"
    assert names(readiness.prefer([A, B], {})) == "ab", "the same call asks again"
    now.seconds = 1.1
    assert names(readiness.prefer([A, B], {})) == "b"
    readiness.called("a", 200)
    assert names(readiness.prefer([A, B], {"b": 9})) == "ab"


def test_one_call_tries_only_one_of_those_on_trial(readiness: Readiness, now: Now) -> None:
    break_(readiness, "a")
    break_(readiness, "b")
    now.seconds = 1.0
    first = names(readiness.prefer([A, B, C], {}))
    now.seconds = 1.1
    second = names(readiness.prefer([A, B, C], {}))
    now.seconds = 1.2
    assert sorted((first, second)) == ["ac", "bc"]
    assert names(readiness.prefer([A, B, C], {})) == "c"


def test_aborted_calls_say_nothing(readiness: Readiness, now: Now) -> None:
    for _ in range(5):
        readiness.called("a", Aborted())
    assert readiness.standing("a") is Standing.READY
    break_(readiness, "b")
    now.seconds = 1.0
    readiness.prefer([B], {})
    readiness.called("b", Aborted())
    now.seconds = 1.1
    assert readiness.standing("b") is Standing.BROKEN
    now.seconds = 2.0
    assert readiness.standing("b") is Standing.TRIAL


def test_one_missed_probe_is_forgiven_and_two_are_not(readiness: Readiness) -> None:
    readiness.probed("a", is_healthy=False)
    assert readiness.standing("a") is Standing.READY
    readiness.probed("a", is_healthy=True)
    readiness.probed("a", is_healthy=False)
    assert readiness.standing("a") is Standing.READY
    readiness.probed("a", is_healthy=False)
    assert readiness.standing("a") is Standing.BROKEN


def test_a_refused_connection_needs_no_second_look(readiness: Readiness) -> None:
    readiness.probed("a", is_healthy=False, is_certain=True)
    assert readiness.standing("a") is Standing.BROKEN


def test_one_that_came_back_starts_with_a_clean_record(readiness: Readiness) -> None:
    break_(readiness, "a")
    readiness.probed("a", is_healthy=False, is_certain=True)
    readiness.probed("a", is_healthy=True)
    assert readiness.standing("a") is Standing.READY


def test_good_health_does_not_excuse_failing_calls(readiness: Readiness) -> None:
    break_(readiness, "a")
    readiness.probed("a", is_healthy=True)
    assert readiness.standing("a") is Standing.BROKEN
