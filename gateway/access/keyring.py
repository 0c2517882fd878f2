"""Callers by key, from memory; a key that is not there costs one indexed query, however many ask for it at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from gateway.access.caller import Caller, KeyRefused, at
from gateway.access.keys import digest, looks_valid
from gateway.access.keystore import KeyStore, KeyStoreUnavailable
from gateway.access.unknown import Tries

Value = TypeVar("Value")

KNOWN_MAX = 100_000  # about 1 KB each
UNKNOWN_MAX = 10_000
UNKNOWN_SECONDS = 5.0


class KeyMalformed(KeyRefused):
    """What was sent can't be a key of ours."""


class KeyUnknown(KeyRefused):
    """It looks like a key, but there is none like it."""


class Keyring:
    """One per process. A snapshot stays until the gate calls it stale; `caller` can be asked for a young one."""

    def __init__(self, store: KeyStore, pepper: str, *, now_ms: Callable[[], int], tries: Tries | None = None,
                 known_max: int = KNOWN_MAX) -> None:  # fmt: skip
        self._store = store
        self._pepper = pepper
        self._now_ms = now_ms
        self._tries = tries or Tries()
        self._known_max = known_max
        self._known: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._flights: dict[bytes, asyncio.Task[Caller | None]] = {}

    def peek(self, token: str) -> Caller | None:
        """Without waiting, from memory alone."""
        return self._recall(digest(self._pepper, token), None)

    async def caller(self, token: str, address: str, *, seconds_old: float | None = None) -> Caller:
        """Who holds this key, as known at most `seconds_old` ago (None: at any time, for calls that the gate checks).

        Raises: KeyMalformed, KeyUnknown, TooManyUnknownKeys, KeyStoreUnavailable.
        """
        if not looks_valid(token):
            raise KeyMalformed("The API key is not spelled like one: fare_live_ and 43 letters and digits. Copy it again, whole.")
        hashed = digest(self._pepper, token)
        found = self._recall(hashed, seconds_old)
        if found is not None:
            return found
        if self._known_to_be_unknown(hashed):
            raise _unknown()
        if hashed in self._known:  # only too old: if it can't be asked anew, what is known goes on
            return await self._renewed(hashed)
        return await self._looked_up(hashed, address)

    async def reload(self, caller: Caller) -> Caller:
        """A snapshot newer than this one, if there is one. Raises: KeyUnknown, KeyStoreUnavailable."""
        found = await self._fly(caller.digest)
        if found is not None and found.version <= caller.version:  # it may have joined a query older than the change
            found = await self._fly(caller.digest)
        if found is None:
            raise _unknown()
        return found

    def _recall(self, hashed: bytes, seconds_old: float | None) -> Caller | None:
        entry = self._known.get(hashed)
        if entry is None or (seconds_old is not None and time.monotonic() - entry[1] > seconds_old):
            return None
        self._known.move_to_end(hashed)
        caller, loaded = entry
        if caller.until_ms <= (now_ms := self._now_ms()):
            caller = at(caller, now_ms)
            self._known[hashed] = (caller, loaded)
        return caller

    def _known_to_be_unknown(self, hashed: bytes) -> bool:
        until = self._unknown.get(hashed)
        return until is not None and time.monotonic() < until

    async def _renewed(self, hashed: bytes) -> Caller:
        old = self._known[hashed][0]
        try:
            found = await self._fly(hashed)
        except KeyStoreUnavailable:
            return old
        if found is None:
            raise _unknown()
        return found

    async def _looked_up(self, hashed: bytes, address: str) -> Caller:
        if hashed in self._flights:  # joins a query that is being paid for: a key's first burst is no guessing
            found = await self._fly(hashed)
            if found is None:
                raise _unknown()
            return found
        self._tries.take(address)
        try:
            found = await self._fly(hashed)
        except KeyStoreUnavailable:
            self._tries.give_back(address)
            raise
        if found is None:
            raise _unknown()
        self._tries.give_back(address)
        return found

    async def _fly(self, hashed: bytes) -> Caller | None:
        """One query at a time for a key; whoever comes meanwhile waits for the same one."""
        flight = self._flights.get(hashed)
        if flight is None:
            flight = asyncio.ensure_future(self._load(hashed))
            self._flights[hashed] = flight
            flight.add_done_callback(lambda done: self._landed(hashed, done))
        return await asyncio.shield(flight)  # a caller who leaves takes nothing from the others

    def _landed(self, hashed: bytes, flight: asyncio.Task[Caller | None]) -> None:
        del self._flights[hashed]
        if not flight.cancelled():
            flight.exception()  # seen, also when all who waited have left

    async def _load(self, hashed: bytes) -> Caller | None:
        found = await self._store.find(hashed)
        if found is None:
            self._known.pop(hashed, None)
            _put(self._unknown, hashed, time.monotonic() + UNKNOWN_SECONDS, UNKNOWN_MAX)
            return None
        found = at(found, self._now_ms())
        self._unknown.pop(hashed, None)
        _put(self._known, hashed, (found, time.monotonic()), self._known_max)
        return found


def _put(bounded: OrderedDict[bytes, Value], hashed: bytes, value: Value, most: int) -> None:
    bounded[hashed] = value
    bounded.move_to_end(hashed)
    if len(bounded) > most:
        bounded.popitem(last=False)


def _unknown() -> KeyUnknown:
    return KeyUnknown("This API key does not exist. Check that it was copied whole, from this installation, or create a new one.")
