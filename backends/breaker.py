"""Whether a replica that keeps failing calls gets another one.

| state     | a call succeeded  | a fault of the replica | one that may be the call's  | time                               |
| --------- | ----------------- | ---------------------- | --------------------------- | ---------------------------------- |
| closed    | closed, counts 0  | the third in a row:    | of the third account        |                                    |
|           |                   | open                   | in a row: open              |                                    |
| open      | open (a late one) | open                   | open                        | after the pause: half open, one    |
|           |                   |                        |                             | call tries                         |
| half open | closed            | open, pause doubled    | stays                       | a try that never reported: another |

A fault is the replica's when it refused the connection, or when the same call was answered by another. One that nobody could try
elsewhere may be the call's own; one that all replicas have in common is, and counts for nothing.
"""

from dataclasses import dataclass, replace
from enum import Enum

from backends.failures import EngineFault

FAULTS_TO_OPEN = 3
# Accounts whose calls failed in a row, and could not be tried elsewhere. Each is one voice, however often it calls.
ACCUSERS_TO_OPEN = 3
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Breaker:
    """`since` is when it opened or when its last try began, in seconds of any one clock."""

    state: State = State.CLOSED
    faults: int = 0
    accusers: frozenset[str] = frozenset()
    pause_seconds: float = FIRST_PAUSE_SECONDS
    since: float = 0.0


def is_fault(outcome: BaseException | int) -> bool:
    """Of the replica, that is: an exception, or a status of its. 501 says that it can't do this one thing."""
    if isinstance(outcome, int):
        return outcome >= 500 and outcome != 501
    return isinstance(outcome, EngineFault)


def may_try(breaker: Breaker, now: float) -> bool:
    """Only asked of one that is not closed: has the pause passed?"""
    return now - breaker.since >= breaker.pause_seconds


def after_try_began(breaker: Breaker, now: float) -> Breaker:
    return replace(breaker, state=State.HALF_OPEN, since=now)


def after_success(breaker: Breaker) -> Breaker:
    return breaker if breaker.state is State.OPEN else Breaker()


def after_fault(breaker: Breaker, now: float) -> Breaker:
    if breaker.state is State.OPEN:
        return breaker
    if breaker.state is State.HALF_OPEN:
        pause = min(breaker.pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        return replace(breaker, state=State.OPEN, pause_seconds=pause, since=now)
    faults = breaker.faults + 1
    if faults < FAULTS_TO_OPEN:
        return replace(breaker, faults=faults)
    return Breaker(State.OPEN, since=now)


def after_accusation(breaker: Breaker, now: float, account: str) -> Breaker:
    """`account`: whose call failed. In a try it says nothing: who sends bad requests can't keep an engine from all others."""
    if breaker.state is not State.CLOSED:
        return breaker
    accusers = breaker.accusers | {account}
    if len(accusers) < ACCUSERS_TO_OPEN:
        return replace(breaker, accusers=accusers)
    return Breaker(State.OPEN, since=now)
