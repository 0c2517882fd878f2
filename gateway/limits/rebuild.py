"""A counter that Valkey does not know, rebuilt from the ledger, the events on their way to it, and the open holds."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from billing.days import month_number
from gateway.clock import Clock
from gateway.limits import scripts
from gateway.limits.hold import Ask
from gateway.limits.refusals import GateClosed
from gateway.limits.shard import Shard
from gateway.valkey import Valkey, ValkeyRefused, ValkeyUnavailable

PAGE = 1000  # events a read
ROUNDS_MAX = 20  # each is a few ms, and a cold account admits nothing meanwhile: only running calls can end
SECONDS_MAX = 3.0


class SourceUnavailable(Exception):
    """The record can't be read now."""


class Recorded(Protocol):
    """What the record says of an account and a key on a day, of its packs, and which of the ids asked for it has already."""

    @property
    def version(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def key_used(self) -> int: ...
    @property
    def hangups(self) -> int: ...
    @property
    def pack_used(self) -> int: ...
    @property
    def pack_used_this_month(self) -> int: ...
    @property
    def known(self) -> frozenset[str]: ...


class Source(Protocol):
    """Reads the record in one statement, so that counts and known ids are of one moment. Raises: SourceUnavailable."""

    def __call__(self, account: str, key: str, day: int, candidates: Sequence[str]) -> Awaitable[Recorded]: ...


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    verdict: str
    reason: str
    key: str
    day: int
    fare: int
    from_pack: bool = False


@dataclass(slots=True)
class Counted:
    """Of a day; of packs ever, and in the day's month."""

    used: int
    key_used: int
    hangups: int
    pack_used: int = 0
    pack_used_this_month: int = 0


def count(events: Iterable[Event], recorded: Recorded, *, key: str, day: int) -> Counted:
    """The record plus what is not in it yet. Of several events with one id the first counts, as in the ledger."""
    counted = Counted(
        recorded.used, recorded.key_used, recorded.hangups, recorded.pack_used, recorded.pack_used_this_month
    )  # fmt: skip
    seen = set(recorded.known)
    for event in events:
        if event.id in seen:
            continue
        seen.add(event.id)
        fare = event.fare if event.verdict == "posted" else 0
        if event.from_pack:
            counted.pack_used += fare
            counted.pack_used_this_month += fare if month_number(event.day) == month_number(day) else 0
        if event.day == day:
            counted.used += 0 if event.from_pack else fare
            counted.key_used += fare if event.key == key else 0
            counted.hangups += event.reason == "left_before_output"
    return counted


class Rebuild:
    """One rebuild at a time for each account, key and day in this process; the script keeps other processes' harmless."""

    def __init__(self, valkey: Valkey, source: Source, clock: Clock) -> None:
        self._valkey, self._source, self._clock = valkey, source, clock
        self._running: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    async def warm(self, shard: Shard, ask: Ask) -> None:
        """Returns when the counters are known. Raises: GateClosed."""
        name = (ask.account, ask.key, ask.day)
        task = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.create_task(self._warm(shard, ask), name="rebuild")
            task.add_done_callback(lambda done: self._running.pop(name) and (done.cancelled() or done.exception()))
        try:
            await asyncio.shield(task)
        except (ValkeyUnavailable, ValkeyRefused, SourceUnavailable, TimeoutError) as error:
            raise GateClosed(f"counters can't be read: {error or 'it takes too long'}") from error

    async def _warm(self, shard: Shard, ask: Ask) -> None:
        events: list[Event] = []
        last = "0-0"
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(ROUNDS_MAX):
                last = await self._read(shard, ask.account, events, last)
                recorded = await self._source(ask.account, ask.key, ask.day, [event.id for event in events])
                counted = count(events, recorded, key=ask.key, day=ask.day)
                gateways = [name.decode() for name in await self._valkey.call("ZRANGE", shard.leases, 0, -1)]
                if await self._seed(shard, ask, recorded.version, counted, [last, *gateways]) != b"again":
                    return  # seeded, or warm by another, or the epoch changed: the next admit tells
        raise GateClosed("the account's calls end faster than they can be counted")

    async def _read(self, shard: Shard, account: str, events: list[Event], last: str) -> str:
        """Add the account's events after `last`; returns the last id seen."""
        while True:
            page = await self._valkey.call("XRANGE", shard.events, f"({last}", "+", "COUNT", PAGE)
            for _, fields in page:
                event = _parse(fields, account)
                if event is not None:
                    events.append(event)
            if page:
                last = page[-1][0].decode()
            if len(page) < PAGE:
                return last

    async def _seed(self, shard: Shard, ask: Ask, version: int, counted: Counted, seen: Sequence[str]) -> bytes:
        last, *gateways = seen
        keys = [shard.epoch, shard.leases, shard.account(ask.account), shard.key(ask.key), shard.events]
        answer: bytes = await self._valkey.script(
            scripts.SEED,
            [*keys, *(shard.holds_of(gateway) for gateway in gateways)],
            [shard.nonce, ask.account, ask.key, version, ask.day, counted.used, counted.key_used, counted.hangups, last,
             self._clock.offset_ms, ask.month if ask.numbers.pack_fares > 0 else 0, counted.pack_used,
             counted.pack_used_this_month, *gateways],
        )  # fmt: skip
        return answer


def _parse(fields: Sequence[bytes], account: str) -> Event | None:
    """The account's event; another's, or one that nobody can read (the ledger rejects it too), is None."""
    found: dict[bytes, bytes] = dict(zip(fields[::2], fields[1::2], strict=False))
    text = found.get(b"e", b"")
    if account.encode() not in text:
        return None
    try:
        event: Any = orjson.loads(text)
        if event["account"] != account:
            return None
        told = (found[b"id"].decode(), found[b"v"].decode(), found[b"r"].decode(), event["key"], event["day"], event["fare"])
        return Event(*told, from_pack=event.get("from_pack", False))
    except (KeyError, TypeError, ValueError):
        return None
