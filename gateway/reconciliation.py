"""The whole proof: rows add up to roll-ups, and roll-ups, events on their way and open holds to the live counters."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow
from redis.asyncio import Redis
from redis.exceptions import RedisError

from billing.day_sums import day_sums, keys_of, known_ids, one_moment, position_of
from billing.days import date_of, day_number
from billing.proofs import Finding, Proof, names_of, rejected_since
from billing.reconcile import Difference, reconcile, repair
from gateway.limits.agreement import Disagreement, Live, disagreements
from gateway.limits.census import ACCOUNTS_AT_ONCE, Hashes, ShardBusy, hashes_by_shard, make_cold, read_live
from gateway.limits.shard import Shard, shard_of

Session = psycopg.AsyncConnection[TupleRow]


@dataclass(frozen=True, slots=True)
class Compared:
    """`counters` hashes were compared; what could not be is said in `unproved`."""

    counters: int
    found: Sequence[Disagreement]
    unproved: Sequence[str]


async def prove(
    connection: Session, valkey: Redis, now: datetime, *, shards: int, day: date | None = None, is_repairing: bool = False
) -> Proof:
    """Of all days that are kept, or of one. `connection` is in autocommit.

    What is derived is repaired where that is asked for: roll-ups from the rows, then counters from the roll-ups. Rows stay as
    they are. Raises psycopg's errors; a Valkey that is away is a finding.
    """
    began = time.monotonic()
    rolled = await reconcile(connection, day)
    if rolled.differences and is_repairing:
        await repair(connection, rolled)
    live = await compare_counters(connection, valkey, shards, days_counted(now, day))
    if live.found and is_repairing:
        await _recount(valkey, shards, live.found)
    findings = [
        *(replace(_of_roll_up(one), is_repaired=is_repairing) for one in rolled.differences),
        *(replace(_of_counter(one), is_repaired=is_repairing) for one in live.found),
        *await rejected_since(connection, now - timedelta(days=1)),
        *(Finding("unproved", words) for words in live.unproved),
    ]
    names = await names_of(connection, sorted({one.account for one in findings if one.account}))
    named = [replace(one, name=names.get(one.account or "")) for one in findings]
    return Proof(now, round((time.monotonic() - began) * 1000), rolled.days, rolled.rows, live.counters, named)


def days_counted(now: datetime, day: date | None) -> list[int]:
    """Days whose counters Valkey still has: today's and yesterday's."""
    today = day_number(now.date())
    return [each for each in (today - 1, today) if day in (None, date_of(each))]


async def compare_counters(connection: Session, valkey: Redis, shards: int, days: Sequence[int]) -> Compared:
    counters, found, unproved = 0, list[Disagreement](), list[str]()
    if not days:
        return Compared(0, (), ())
    try:
        hashes = await hashes_by_shard(valkey)
        for number, of in sorted(hashes.items()):
            if number >= shards:
                unproved.append(f"Valkey has counters of shard {number}, and there are only {shards} shards")
                continue
            for accounts in _batches(of.accounts):
                try:
                    compared, differing = await _compare(connection, valkey, Shard(number, ""), (accounts, of), days)
                except ShardBusy as busy:
                    unproved.append(f"live counters were not compared: {busy}")
                else:
                    counters += compared
                    found += differing
    except (RedisError, OSError) as outage:
        unproved.append(f"live counters were not compared: Valkey can't be reached ({outage})")
    return Compared(counters, found, unproved)


async def _compare(
    connection: Session, valkey: Redis, shard: Shard, who: tuple[Sequence[str], Hashes], days: Sequence[int]
) -> tuple[int, list[Disagreement]]:
    """The record's moment is before Valkey's, and ends at the position that it names; so every event after that is counted once.

    The snapshot is kept open while Valkey is asked, as it has to say which of the events it knows; it locks nothing.
    """
    accounts, hashes = who
    async with one_moment(connection):
        position = await position_of(connection, shard.number)
        sums = await day_sums(connection, accounts, days)
        owners = {key: account for key, account in (await keys_of(connection, accounts)).items() if key in hashes.keys}
        known_at = None if position is None else (position.nonce, position.entry)
        live = await read_live(valkey, shard, (accounts, list(owners)), days, known_at)
        of_packs = {event.day for event in live.events if event.from_pack}  # they count on whatever day they were used
        known = await known_ids(connection, _ids(live), sorted({*days} | of_packs))
    return len(live.accounts) + len(live.keys), list(disagreements(live, sums, known, owners=owners, days=days))


def _batches(accounts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(accounts), ACCOUNTS_AT_ONCE):
        yield accounts[start : start + ACCOUNTS_AT_ONCE]


def _ids(live: Live) -> Iterator[str]:
    """What is no id can't be in the ledger either."""
    for event in live.events:
        with contextlib.suppress(ValueError):
            yield str(UUID(event.id))


async def _recount(valkey: Redis, shards: int, found: Sequence[Disagreement]) -> None:
    of_shard: dict[int, list[Disagreement]] = {}
    for one in found:
        of_shard.setdefault(shard_of(one.account, shards), []).append(one)
    for number, ones in of_shard.items():
        accounts = {one.account for one in ones if one.key is None}
        keys = {one.key for one in ones if one.key is not None}
        await make_cold(valkey, Shard(number, ""), accounts, keys)


def _of_roll_up(one: Difference) -> Finding:
    what = (
        f"the roll-up has {one.rolled_up:,} {one.what.replace('_', ' ')}, the rows add up to {one.summed:,}"
        f" (key {one.key_id}, {one.model})"
    )
    return Finding("roll-up", what, str(one.account_id), day=one.day)


def _of_counter(one: Disagreement) -> Finding:
    whose = f"the live counter of {one.what}" if one.key is None else f"the live counter of {one.what} of key {one.key}"
    parts = f"{one.recorded:,} in the ledger, {one.on_the_way:,} on the way to it, {one.held:,} held"
    off = one.counted - one.expected
    much = f"{off:,} too many" if off > 0 else f"{-off:,} too few"
    what = f"{whose} is {one.counted:,}, the record's {one.expected:,} ({parts}): {much}"
    return Finding("counter", what, one.account, day=None if one.day is None else date_of(one.day))
