"""Where a call goes: to its account's own replicas, to those that everybody shares, or to the first and then the second.

| its account has replicas of its own, | none of their slots is free                                              |
| with `overflow`                      |                                                                          |
| ------------------------------------ | ------------------------------------------------------------------------ |
| `never`                              | it is refused at once                                                    |
| `queue` (when nothing is said)       | it waits for one of them                                                 |
| `shared`                             | it is a call on the shared replicas, and waits there; without shared     |
|                                      | ones of that model it waits for one of its own                           |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from backends.fleet import Replica


@dataclass(frozen=True, slots=True)
class Way:
    """One pool that a call may go to: its name in the queue, its replicas, and whether the call may wait for them."""

    pool: str
    replicas: Sequence[Replica]
    may_wait: bool = True


def pool_name(model: str, account: str) -> str:
    """A dedicated pool's. A model's name has no `@` before which it could be mistaken for another's."""
    return f"{model}@{account}"


def ways(model: str, own: Sequence[Replica], shared: Sequence[Replica]) -> tuple[Way, ...]:
    """In the order in which they are tried; the replicas of `own` are all dedicated to the caller's account."""
    everybody = Way(model, shared)
    if not own:
        return (everybody,)
    name = pool_name(model, own[0].dedicated_to)
    match own[0].overflow:
        case "never":
            return (Way(name, own, may_wait=False),)
        case "queue":
            return (Way(name, own),)
        case "shared":
            return (Way(name, own, may_wait=False), everybody) if shared else (Way(name, own),)
        case other:
            assert_never(other)
