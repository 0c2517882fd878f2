"""A replica's states, as all gateways have them in common.

| state    | is seen well | is ill | drain    | undrain  | sleep    | wake   | leave | come     |
| -------- | ------------ | ------ | -------- | -------- | -------- | ------ | ----- | -------- |
| starting | ready        |        | draining |          |          |        | gone  |          |
| ready    |              | broken | draining |          | sleeping |        | gone  |          |
| broken   | ready        |        | draining |          |          |        | gone  |          |
| draining |              |        |          | starting |          |        | gone  |          |
| sleeping |              |        | draining |          |          | waking | gone  |          |
| waking   | ready        | broken | draining |          |          |        | gone  |          |
| gone     |              |        |          |          |          |        |       | starting |

Where nothing stands, what is seen changes nothing, and what is asked for can't be had. Only starting, ready and broken are given
new calls, and each gateway itself tells the sound from the ill: it finds out before the record does. What runs finishes in all.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    STARTING = "starting"
    READY = "ready"
    BROKEN = "broken"
    DRAINING = "draining"
    SLEEPING = "sleeping"
    WAKING = "waking"
    GONE = "gone"


class Event(StrEnum):
    """`WELL` and `ILL` are what gateways see; the rest is asked for, or follows from the addresses of a name."""

    WELL = "well"
    ILL = "ill"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    SLEEP = "sleep"
    WAKE = "wake"
    LEAVE = "leave"
    COME = "come"


class NotPossible(Exception):
    """A replica in this state can't do what was asked of it."""

    def __init__(self, state: State, event: Event) -> None:
        able = sorted(one for one, asked in _NEXT if asked is event)
        super().__init__(f"it is {state}; `{event}` is for one that is {' or '.join(able)}")
        self.state, self.event = state, event


_NEXT: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.STARTING, Event.WELL): State.READY,
        (State.BROKEN, Event.WELL): State.READY,
        (State.WAKING, Event.WELL): State.READY,
        (State.READY, Event.ILL): State.BROKEN,
        (State.WAKING, Event.ILL): State.BROKEN,
        **{(state, Event.DRAIN): State.DRAINING for state in State if state not in (State.DRAINING, State.GONE)},
        (State.DRAINING, Event.UNDRAIN): State.STARTING,
        (State.READY, Event.SLEEP): State.SLEEPING,
        (State.SLEEPING, Event.WAKE): State.WAKING,
        **{(state, Event.LEAVE): State.GONE for state in State if state is not State.GONE},
        (State.GONE, Event.COME): State.STARTING,
    }
)
SEEN = frozenset({Event.WELL, Event.ILL})
OPEN = frozenset({State.STARTING, State.READY, State.BROKEN})
"""May be given new calls, by a gateway that finds it sound."""


def after(state: State, event: Event) -> State:
    """Raises: NotPossible, but for what is only seen."""
    found = _NEXT.get((state, event))
    if found is not None:
        return found
    if event in SEEN:
        return state
    raise NotPossible(state, event)


def assertion(state: State, *, is_up: bool, fell: bool) -> Event | None:
    """What one gateway has to say of a replica that the record has in `state`; None: nothing new.

    That it sees it well it says as long as the record has it otherwise, that it is ill only when it falls (`fell`): so the record
    has a replica broken when all gateways that looked say so, and they can't go on contradicting each other.
    """
    if is_up and after(state, Event.WELL) is not state:
        return Event.WELL
    if fell and after(state, Event.ILL) is not state:
        return Event.ILL
    return None
