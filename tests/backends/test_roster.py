"""Who is there, and who of them may be given new calls."""

from backends.engines.vllm import VLLM
from backends.fleet import Fleet, Replica
from backends.roster import Record, Roster, pool_of
from backends.states import OPEN, State


def replica(name: str, model: str = "m", account: str = "") -> Replica:
    return Replica.at(f"http://{name}:8000", name=name, model=model, engine=VLLM, slots=1, dedicated_to=account)


A, B, OWN = replica("a"), replica("b"), replica("own", account="acme")


def names(roster: Roster, pool: str = "m") -> list[str]:
    return [one.id for one in roster.open(pool)]


def test_of_each_state_who_may_be_given_calls() -> None:
    roster = Roster(Fleet((A,)))
    for state in State:
        roster.follow({"a": Record(state, 1)}, ())
        assert (names(roster) == ["a"]) is (state in OPEN)
        assert (roster.replica("a") is None) is (state is State.GONE)


def test_calls_that_wait_see_who_comes_and_goes_in_the_list_that_they_have() -> None:
    roster = Roster(Fleet((A, OWN)))
    held, own = roster.open("m"), roster.open("m@acme")
    roster.follow({}, [B])
    assert [one.id for one in held] == ["a", "b"]
    roster.follow({"a": Record(State.DRAINING, 2)}, [])
    assert held == []
    assert [pool_of(one) for one in own] == ["m@acme"]


def test_of_who_comes_somebody_is_told_before_it_may_be_given_calls() -> None:
    heard: list[tuple[str, list[str]]] = []
    roster = Roster(Fleet((A,)), lambda name: heard.append((name, names(roster))))
    roster.found("group", [B])
    roster.found("group", [B])
    assert heard == [("b", ["a"])]
    assert (roster.origin("a"), roster.origin("b")) == ("file", "found")


def test_listeners_hear_of_members_and_not_of_states() -> None:
    heard: list[int] = []
    roster = Roster(Fleet((A,)))
    roster.listen(lambda: heard.append(len(roster.replicas)))
    roster.follow({"a": Record(State.DRAINING, 2)}, ())
    assert heard == []
    roster.follow({"a": Record(State.DRAINING, 2)}, [B])
    roster.follow({"a": Record(State.GONE, 3)}, [B])
    assert heard == [2, 1]


def test_the_fleet_file_goes_before_one_that_was_added_by_the_same_name() -> None:
    other = replica("a", model="other")
    roster = Roster(Fleet((A,)))
    roster.follow({}, [other])
    assert roster.replica("a") is A
