"""Where the calls of an account with replicas of its own go, and what its engine is told about their class."""

from typing import get_args

import pytest

from backends.dedicated import Way, ways
from backends.engines.kinds import ENGINE_KINDS
from backends.engines.priority import priority_of
from backends.fleet import Overflow, Replica
from billing.plans import SERVICE_CLASSES

SHARED = [Replica.at("http://127.0.0.1:1", name="s", model="m", engine=ENGINE_KINDS["vllm"], slots=4)]


def own(overflow: Overflow) -> list[Replica]:
    at = {"name": "o", "model": "m", "engine": ENGINE_KINDS["vllm"], "slots": 4, "dedicated_to": "acme"}
    return [Replica.at("http://127.0.0.1:2", overflow=overflow, **at)]  # type: ignore[arg-type]  # of different types


def test_who_has_no_replicas_goes_to_everybodys() -> None:
    assert ways("m", [], SHARED) == (Way("m", SHARED),)


@pytest.mark.parametrize(
    ("overflow", "is_tried"),
    [
        ("never", [("m@acme", False)]),
        ("queue", [("m@acme", True)]),
        ("shared", [("m@acme", False), ("m", True)]),
    ],
)
def test_what_is_tried_in_which_order(overflow: Overflow, is_tried: list[tuple[str, bool]]) -> None:
    assert [(way.pool, way.may_wait) for way in ways("m", own(overflow), SHARED)] == is_tried


def test_without_shared_replicas_there_is_nothing_to_overflow_to() -> None:
    assert [(way.pool, way.may_wait) for way in ways("m", own("shared"), [])] == [("m@acme", True)]


@pytest.mark.parametrize("overflow", get_args(Overflow))
def test_nobody_waits_before_the_last_way(overflow: Overflow) -> None:
    assert not any(way.may_wait for way in ways("m", own(overflow), SHARED)[:-1])


def test_every_class_goes_before_the_next_by_the_kinds_own_polarity() -> None:
    def numbers(kind: str, *, has_priority: bool = True) -> list[int | None]:
        at = Replica.at("http://127.0.0.1:1", name="r", model="m", engine=ENGINE_KINDS[kind], slots=1, has_priority=has_priority)
        return [priority_of(at, service_class) for service_class in SERVICE_CLASSES]

    assert numbers("vllm") == [10, 20, 30, 40, 50]  # lower goes first
    assert numbers("sglang") == [50, 40, 30, 20, 10]  # higher goes first
    assert numbers("llamacpp") == numbers("vllm", has_priority=False) == [None] * 5
