"""Everything that the stand-in remembers: its things, its clock with what is due, and the events that it told."""

import copy
import heapq
import random
import string
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.stripe.faults import missing

API_VERSION = "2026-10-28.endive"
HOUR = 3600
DAY = 24 * HOUR
Thing = dict[str, Any]
_LETTERS = string.ascii_letters + string.digits


class World:
    """`now` None: the clock runs with the machine's, and can be moved forward; else it stands until it is moved."""

    def __init__(self, *, now: int | None = None, seed: int = 0) -> None:
        self.address = ""  # where its hosted pages are
        self.random = random.Random(seed)
        self.retry_days = [3, 5, 7]  # between the tries of an invoice whose payment failed
        self.after_retries = "canceled"  # or unpaid, or past_due
        self.request: Thing = {"id": None, "idempotency_key": None}
        self.things: dict[str, Thing] = {}
        self._kinds: dict[str, list[Thing]] = {}
        self.told: Callable[[Thing], None] = lambda event: None
        self._watching: dict[str, list[Callable[[Thing], None]]] = {}
        self._stands, self._offset = now, 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    @property
    def now(self) -> int:
        """Seconds."""
        return self._stands if self._stands is not None else int(time.time()) + self._offset

    def at(self, when: int, action: Callable[[], None], *, first: bool = False) -> None:
        """`first`: before what else is due in that second, as a schedule's phase is before the renewal that it is for."""
        self._number += 1
        heapq.heappush(self._due, (when, -self._number if first else self._number, action))

    def advance(self, to: int) -> None:
        """Does what is due until then, each at its own time."""
        ran_with_us = self._stands is None
        self._stands = self.now
        try:
            while self._due and self._due[0][0] <= to:
                when, _, action = heapq.heappop(self._due)
                self._stands = max(self._stands, when)
                action()
            self._stands = max(self._stands, to)
        finally:
            if ran_with_us:
                self._offset = self._stands - int(time.time())
                self._stands = None

    def id(self, prefix: str) -> str:
        return f"{prefix}_{''.join(self.random.choices(_LETTERS, k=16))}"

    def add(self, prefix: str, kind: str, /, **fields: Any) -> Thing:
        which = fields.pop("id", None) or self.id(prefix)
        thing: Thing = {"id": which, "object": kind, "created": self.now, "livemode": False, **fields}
        self.things[which] = thing
        self._kinds.setdefault(kind, []).append(thing)
        return thing

    def get(self, kind: str, which: Any, *, param: str = "id") -> Thing:
        """Raises: Fault."""
        found = self.things.get(which)
        if found is None or found["object"] != kind:
            raise missing(kind, str(which), param)
        return found

    def all(self, kind: str, **fields: Any) -> Iterator[Thing]:
        """Oldest first; a field that is None is not looked at."""
        wanted = {name: value for name, value in fields.items() if value is not None}
        for thing in tuple(self._kinds.get(kind, ())):
            if thing["id"] in self.things and all(thing.get(name) == value for name, value in wanted.items()):
                yield thing

    def forget(self) -> None:
        """As new, but for the time."""
        self.things.clear()
        self._kinds.clear()
        self._due.clear()

    def watch(self, event: str, then: Callable[[Thing], None]) -> None:
        """What else happens here when a thing is told of: an intent that succeeds pays its invoice."""
        self._watching.setdefault(event, []).append(then)

    def emit(self, event: str, thing: Thing, before: Thing | None = None) -> None:
        data = {"object": shown(thing)} | ({"previous_attributes": before} if before is not None else {})
        made = self.add(
            "evt", "event", api_version=API_VERSION, data=data, pending_webhooks=0, request=dict(self.request), type=event
        )
        self.told(made)
        for then in self._watching.get(event, ()):
            then(thing)

    def change(self, event: str, thing: Thing, fields: Thing) -> None:
        """Sets fields and tells of it, when they differ."""
        before = {name: copy.deepcopy(thing.get(name)) for name, value in fields.items() if thing.get(name) != value}
        if before:
            thing.update(fields)
            self.emit(event, thing, {name: value for name, value in before.items() if not name.startswith("_")})


def shown(thing: Any) -> Any:
    """A copy without what the stand-in keeps for itself."""
    if isinstance(thing, dict):
        return {name: shown(value) for name, value in thing.items() if not name.startswith("_")}
    return [shown(one) for one in thing] if isinstance(thing, list) else thing


def listed(things: list[Thing], url: str) -> Thing:
    """A list inside of a thing."""
    return {"object": "list", "data": things, "has_more": False, "url": url}


def metadata(old: Thing, given: Any) -> Thing:
    """Keys merge; an empty value takes one away, an empty string all of them."""
    if given == "":
        return {}
    return {name: value for name, value in {**old, **(given or {})}.items() if value != ""}
