"""The table of a replica's states, and that gateways which see different things agree on what stands in the record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends import states
from backends.states import OPEN, SEEN, Event, NotPossible, State, after, assertion

ASKED = [event for event in Event if event not in SEEN]


def table() -> dict[tuple[State, Event], State]:
    """As the file's own docstring draws it."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (states.__doc__ or "").splitlines() if line[:1] == "|"]
    columns = [Event(name.removeprefix("is ").removeprefix("seen ")) for name in rows[0][1:]]
    return {(State(row[0]), event): State(cell) for row in rows[2:] for event, cell in zip(columns, row[1:], strict=True) if cell}


def test_the_table_that_is_drawn_is_the_one_that_holds() -> None:
    drawn = table()
    assert {state for state, _ in drawn} == set(State)
    for state in State:
        for event in Event:
            if (state, event) in drawn:
                assert after(state, event) is drawn[state, event]
            elif event in SEEN:
                assert after(state, event) is state
            else:
                with pytest.raises(NotPossible, match=f"it is {state}"):
                    after(state, event)


@given(st.lists(st.sampled_from(list(Event))))
def test_whatever_happens_only_an_operator_brings_back_what_he_took_out(events: list[Event]) -> None:
    state, taken_out = State.STARTING, False
    for event in events:
        try:
            state = after(state, event)
        except NotPossible:
            continue
        if event in (Event.DRAIN, Event.LEAVE, Event.SLEEP):
            taken_out = True
        if event in (Event.UNDRAIN, Event.COME, Event.WAKE):
            taken_out = False
        assert not (taken_out and state in OPEN)
        assert taken_out or state in OPEN or state is State.WAKING


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40), st.sampled_from(sorted(OPEN)))
def test_gateways_that_contradict_each_other_come_to_rest(seen: list[tuple[int, bool]], state: State) -> None:
    """Each looks in turn, in any order; at the end the record says what it should, and nobody has anything to add."""
    sights, fallen = [False] * 3, [False] * 3

    def look(gateway: int) -> bool:
        nonlocal state
        event = assertion(state, is_up=sights[gateway], fell=fallen[gateway])
        fallen[gateway] = False
        if event is not None:
            state = after(state, event)
        return event is not None

    for gateway, is_up in seen:
        fallen[gateway] = sights[gateway] and not is_up
        sights[gateway] = is_up
        look(gateway)
    for _ in range(2):
        changed = sum(look(gateway) for gateway in range(3))
    assert not changed
    if any(sights):
        assert state is State.READY
    elif any(is_up for _, is_up in seen):
        assert state is State.BROKEN
