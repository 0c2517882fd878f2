"""Reads a shard's counters, open holds and unread events as of one moment, for the proof that they add up."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis.asyncio import Redis

from gateway.limits.agreement import Counted, Ended, Held, Live
from gateway.limits.shard import Shard

# One read is one MULTI, which the paid path waits for: a few ms with so many accounts, and with so many events.
ACCOUNTS_AT_ONCE = 100
EVENTS_MAX = 2000
TRIES_MAX = 5
_HASH = re.compile(rb"\{s(\d+)\}:([ak]):([0-9a-f-]{36})")


class ShardBusy(Exception):
    """The shard changes faster than it can be read, or the worker is too far behind in it."""


@dataclass(slots=True)
class Hashes:
    """Whose counters a shard has."""

    accounts: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


async def hashes_by_shard(valkey: Redis) -> dict[int, Hashes]:
    found: defaultdict[int, Hashes] = defaultdict(Hashes)
    async for name in valkey.scan_iter(match="{s*}:[ak]:*", count=1000):
        if parts := _HASH.fullmatch(name):
            of = found[int(parts[1])]
            (of.accounts.append if parts[2] == b"a" else of.keys.add)(parts[3].decode())
    return dict(found)


async def read_live(
    valkey: Redis, shard: Shard, who: tuple[Sequence[str], Sequence[str]], days: Sequence[int], position: tuple[str, str] | None
) -> Live:
    """`who` are accounts and keys; `position` is how far the ledger has read: nonce and entry. Raises: ShardBusy."""
    for _ in range(TRIES_MAX):
        nonce_found: Any = await valkey.hget(shard.epoch, "nonce")
        gateways: Any = await valkey.zrange(shard.leases, 0, -1)
        nonce = _text(nonce_found)
        # Of another memory than the ledger's position is in, every entry may be new.
        after = f"({position[1]}" if position is not None and position[0] == nonce else "-"
        read = _Read(valkey, shard, days)
        read.ask(who, [name.decode() for name in gateways], after)
        live = await read.answer(nonce, gateways)
        if live is not None:
            return live
    raise ShardBusy(f"shard {shard.number} does not hold still")


async def make_cold(valkey: Redis, shard: Shard, accounts: Iterable[str], keys: Iterable[str]) -> None:
    """Counters without a nonce are unknown: the account's next call has them rebuilt from the record, as after a lost memory."""
    pipeline = valkey.pipeline(transaction=False)
    for name in (*map(shard.account, accounts), *map(shard.key, keys)):
        pipeline.hdel(name, "n")
    if len(pipeline):
        await pipeline.execute()


class _Read:
    """One MULTI, and what its answers mean."""

    def __init__(self, valkey: Redis, shard: Shard, days: Sequence[int]) -> None:
        self._pipeline = valkey.pipeline(transaction=True)
        self._shard, self._days = shard, days
        self._accounts: Sequence[str] = ()
        self._keys: Sequence[str] = ()
        self._holds = 0

    def ask(self, who: tuple[Sequence[str], Sequence[str]], gateways: Sequence[str], after: str) -> None:
        self._accounts, self._keys = who
        self._holds = len(gateways)
        shard, pipeline = self._shard, self._pipeline
        pipeline.hget(shard.epoch, "nonce")
        pipeline.zrange(shard.leases, 0, -1)
        pipeline.xrange(shard.events, after, "+", count=EVENTS_MAX + 1)
        for gateway in gateways:
            pipeline.hvals(shard.holds_of(gateway))
        names = ("n", "seeded", "open", "b", *(f"{letter}{day}" for day in self._days for letter in "ug"))
        for name in (*map(shard.account, self._accounts), *map(shard.key, self._keys)):
            pipeline.hmget(name, names)

    async def answer(self, nonce: str, gateways: Sequence[bytes]) -> Live | None:
        """None when something began between the questions before and this one. Raises: ShardBusy."""
        found, leases, entries, *rest = await self._pipeline.execute()
        if _text(found) != nonce or set(leases) - set(gateways):
            return None
        if len(entries) > EVENTS_MAX:
            raise ShardBusy(f"the ledger is more than {EVENTS_MAX:,} events behind in shard {self._shard.number}")
        holds = [hold for page in rest[: self._holds] for packed in page if (hold := _held(packed, nonce)) is not None]
        counted = [_counted(values, self._days) for values in rest[self._holds :]]
        events = [event for _, fields in entries if (event := _ended(fields)) is not None]
        middle = len(self._accounts)
        accounts = dict(zip(self._accounts, counted[:middle], strict=True))
        keys = dict(zip(self._keys, counted[middle:], strict=True))
        return Live(nonce, accounts, keys, holds, events)


def _counted(values: Sequence[bytes | None], days: Sequence[int]) -> Counted:
    nonce, seeded, open_, packs, *rest = values
    numbers = [None if value is None else int(value) for value in rest]
    return Counted(
        nonce=None if nonce is None else nonce.decode(),
        seeded=None if seeded is None else int(seeded),
        open=None if open_ is None else int(open_),
        packs=None if packs is None else int(packs),
        fares=dict(zip(days, numbers[::2], strict=True)),
        hangups=dict(zip(days, numbers[1::2], strict=True)),
    )


def _held(packed: bytes, nonce: str) -> Held | None:
    account, key, day, fare, _, _, _, _, of, *month = orjson.loads(packed)
    return Held(account, key, day, fare, from_pack=bool(month)) if of == nonce else None


def _ended(fields: Mapping[bytes, bytes]) -> Ended | None:
    """None: nobody can read it, the ledger will reject it too."""
    try:
        event: Any = orjson.loads(fields[b"e"])
        fares = event["fare"] if fields[b"v"] == b"posted" else 0
        is_hangup = fields[b"r"] == b"left_before_output"
        whose = (fields[b"id"].decode(), event["account"], event["key"], event["day"])
        return Ended(*whose, fares, from_pack=event.get("from_pack", False), is_hangup=is_hangup)
    except (KeyError, TypeError, ValueError):
        return None


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode()
