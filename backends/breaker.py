"""Whether a replica that keeps failing calls gets another one.

| state     | a call succeeded | a fault of the replica                | time                                       |
| --------- | ---------------- | ------------------------------------- | ------------------------------------------ |
| closed    | closed, count 0  | count + 1; the third in a row: open,  |                                            |
|           |                  | unless all were of one account's calls |                                            |
| open      | open (a late one)| open                                  | after the pause: half open, one call tries |
| half open | closed           | open, and the pause doubles           | a try that never reported: one more        |
"""

from dataclasses import dataclass, replace
from enum import Enum

from backends.failures import EngineFault

FAULTS_TO_OPEN = 3
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
    blamed_by: frozenset[str] = frozenset()
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


def after_fault(breaker: Breaker, now: float, account: str = "") -> Breaker:
    """`account`: whose call it was, when the call itself may be to blame; three bad requests of one customer close nothing."""
    if breaker.state is State.OPEN:
        return breaker
    if breaker.state is State.HALF_OPEN:
        pause = min(breaker.pause_seconds * 2, LONGEST_PAUSE_SECONDS)
        return replace(breaker, state=State.OPEN, pause_seconds=pause, since=now)
    faults, blamed_by = breaker.faults + 1, breaker.blamed_by | {account}
    if faults < FAULTS_TO_OPEN or (len(blamed_by) == 1 and account):
        return replace(breaker, faults=faults, blamed_by=blamed_by)
    return Breaker(State.OPEN, faults, blamed_by, FIRST_PAUSE_SECONDS, now)
