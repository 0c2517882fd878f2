"""The order in which replicas are asked."""

from collections import Counter

from backends.choose import Standing, preference
from backends.engines.vllm import VLLM
from backends.fleet import Replica


def replica(name: str, slots: int = 10) -> Replica:
    return Replica.at("http://127.0.0.1:1", name=name, model="m", engine=VLLM, slots=slots)


A, B, C = replica("a"), replica("b"), replica("c")


def names(order: tuple[Replica, ...]) -> str:
    return "".join(replica.id for replica in order)


def test_the_least_busy_by_its_own_size_goes_first() -> None:
    big = replica("d", slots=100)
    order = preference([A, B, big], {"a": 5, "b": 2, "d": 10}, {})
    assert names(order) == "dba"


def test_equals_take_turns() -> None:
    firsts = Counter(preference([A, B, C], {}, {}, turn)[0].id for turn in range(9))
    assert firsts == {"a": 3, "b": 3, "c": 3}


def test_a_full_replica_is_still_listed_since_the_queue_decides() -> None:
    assert names(preference([A, B], {"a": 10, "b": 9}, {})) == "ba"


def test_broken_ones_are_left_out() -> None:
    assert names(preference([A, B], {"b": 9}, {"a": Standing.BROKEN})) == "b"
    assert preference([A], {}, {"a": Standing.BROKEN}) == ()
    assert preference([], {}, {}) == ()


def test_one_on_trial_is_tried() -> None:
    assert names(preference([A, B], {"b": 3}, {"b": Standing.TRIAL})) == "ba"
