"""Fares of packs on a real server: taken whole beyond the quota, given back, and known again after all is forgotten."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest

from billing.days import month_number
from gateway.clock import DAY_MS, Clock
from gateway.limits import spent
from gateway.limits.gate import Gate, QuotaUsedUp
from gateway.limits.hold import Ask
from gateway.limits.policy import Numbers
from gateway.limits.refusals import PacksUsed
from tests.limits.house import ACCOUNT, Record, a_gate, an_ask, shard_at

Peek = Any


def pack_event(ask: Ask) -> bytes:
    told: dict[str, Any] = {"id": ask.request_id, "account": ask.account, "key": ask.key, "day": ask.day, "fare": ask.fare}
    return orjson.dumps({**told, "from_pack": ask.from_pack})


async def run(gate: Gate, ask: Ask, verdict: str = "posted") -> str:
    """Which of the two paid, or would have."""
    try:
        with await gate.admit(ask) as hold:
            hold.settle(verdict, "answered", pack_event(ask))
    except QuotaUsedUp:
        return "refused"
    return "quota" if hold.pack_left is None else "pack"


def counters(peek: Peek, ask: Ask) -> tuple[int, ...]:
    """Used of the quota, of the packs ever, and in the month; and calls open."""
    found = peek.hgetall(shard_at().account(ACCOUNT))
    return tuple(int(found.get(name.encode(), -1)) for name in (f"u{ask.day}", "b", f"c{ask.month}", "open"))


@pytest.mark.parametrize("gates", [1, 3])
async def test_a_quota_and_a_pack_admit_exactly_what_they_hold_however_many_ask_at_once(url: str, peek: Peek, gates: int) -> None:
    limits = Numbers(quota=40, pack_fares=30)
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(a_gate(url)) for _ in range(gates)]
        paid = Counter(await asyncio.gather(*(run(opened[i % gates], an_ask(limits)) for i in range(120))))
        assert paid == {"quota": 40, "pack": 30, "refused": 50}
        assert [await gate.flush(2) for gate in opened] == [0] * gates
    assert counters(peek, an_ask()) == (40, 30, 30, 0)
    events = [orjson.loads(fields[b"e"]) for _, fields in peek.xrange(shard_at().events)]
    assert Counter(event["from_pack"] for event in events) == {False: 40, True: 30}


async def test_a_call_that_does_not_fit_the_quota_is_paid_whole_by_the_pack(url: str, peek: Peek) -> None:
    limits = Numbers(quota=5, pack_fares=10)
    async with a_gate(url) as gate:
        assert [await run(gate, an_ask(limits, fare=fare)) for fare in (4, 3, 1, 7, 8, 7)] == [
            "quota", "pack", "quota", "pack", "refused", "refused"
        ]  # fmt: skip
        await gate.flush(2)
    assert counters(peek, an_ask()) == (5, 10, 10, 0)


async def test_what_failed_goes_back_to_the_pack_and_the_hold_says_what_is_left(url: str, peek: Peek) -> None:
    limits = Numbers(quota=0, pack_fares=2)
    async with a_gate(url) as gate:
        assert await run(gate, an_ask(limits, fare=2), "voided") == "pack"
        await gate.flush(2)
        ask = an_ask(limits)
        with await gate.admit(ask) as hold:
            assert (hold.pack_left, hold.remaining, hold.ask.from_pack) == (1, 0, True)
        await gate.flush(2)
    assert counters(peek, ask) == (0, 0, 0, 0)


async def test_hang_ups_of_a_pack_are_free_up_to_their_number_and_billed_to_it_beyond(url: str, peek: Peek) -> None:
    limits = Numbers(quota=0, pack_fares=9, free_hangups=2)
    async with a_gate(url) as gate:
        for _ in range(4):
            await run(gate, an_ask(limits), "hangup")
            await gate.flush(2)
    assert counters(peek, an_ask()) == (0, 2, 2, 0)


async def test_the_customers_own_cap_ends_a_month_and_the_next_month_begins_anew(url: str, peek: Peek) -> None:
    limits = Numbers(quota=0, pack_fares=10, pack_fares_per_month=2)
    now = Clock().now_ms()
    day = now // DAY_MS
    to_the_first = next(later for later in range(1, 32) if month_number(day + later) != month_number(day))
    before = (day + to_the_first) * DAY_MS - 2000
    async with a_gate(url, offset_ms=before - now) as gate:
        assert [await run(gate, an_ask(limits, at_ms=before)) for _ in range(3)] == ["pack", "pack", "refused"]
        with pytest.raises(QuotaUsedUp) as refused:
            await gate.admit(an_ask(limits, at_ms=before))
        assert refused.value.packs == PacksUsed(10, 2, 2, 2)
        after = before + 4000
        assert await run(gate, an_ask(limits, at_ms=after)) == "pack"  # of what the record says: nothing yet in this month
        await gate.flush(2)
    assert counters(peek, an_ask(at_ms=after)) == (0, 3, 1, 0)
    assert counters(peek, an_ask(at_ms=before))[2] == 2


async def test_midnight_brings_a_new_quota_and_leaves_the_pack_as_it_was(url: str) -> None:
    limits = Numbers(quota=1, pack_fares=2)
    now = Clock().now_ms()
    before = now + DAY_MS - now % DAY_MS - 2000
    async with a_gate(url, offset_ms=before - now) as gate:
        assert [await run(gate, an_ask(limits, at_ms=before)) for _ in range(2)] == ["quota", "pack"]
        after = before + 4000
        assert [await run(gate, an_ask(limits, at_ms=after)) for _ in range(3)] == ["quota", "pack", "refused"]
        assert await run(gate, an_ask(limits, at_ms=before)) == "refused"  # a late one of the old day finds the same pack


async def test_a_keys_own_cap_counts_what_packs_pay_too(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1, key_quota=3, pack_fares=9)
    async with a_gate(url) as gate:
        assert [await run(gate, an_ask(limits)) for _ in range(5)] == ["quota", "pack", "pack", "refused", "refused"]
        with pytest.raises(QuotaUsedUp) as refused:
            await gate.admit(an_ask(limits))
        assert (refused.value.scope, refused.value.used, refused.value.packs) == ("key", 3, None)
        await gate.flush(2)
    assert counters(peek, an_ask()) == (1, 2, 2, 0)


async def test_a_pack_that_is_bought_while_calls_run_counts_once(url: str) -> None:
    before, after = Numbers(quota=0, pack_fares=5), Numbers(quota=0, pack_fares=12)
    async with a_gate(url) as one, a_gate(url) as two:
        paid = await asyncio.gather(
            *(run(one, an_ask(before)) for _ in range(20)), *(run(two, an_ask(after, version=2)) for _ in range(20)),
            return_exceptions=True,
        )  # fmt: skip
        assert paid.count("pack") <= 12
        rest = [await run(two, an_ask(after, version=2)) for _ in range(13)]
        assert paid.count("pack") + rest.count("pack") == 12


async def test_a_refund_of_what_is_used_leaves_nothing_and_owes_nothing_new(url: str) -> None:
    async with a_gate(url) as gate:
        assert [await run(gate, an_ask(Numbers(quota=0, pack_fares=10), fare=4)) for _ in range(2)] == ["pack", "pack"]
        with pytest.raises(QuotaUsedUp) as refused:
            await gate.admit(an_ask(Numbers(quota=0, pack_fares=7), version=2))  # one that was on its way at the refund
        assert refused.value.packs is not None
        assert refused.value.packs.left == 0
        ask = an_ask(Numbers(quota=0, pack_fares=9), version=3)
        assert await run(gate, ask) == "pack"


async def test_a_flush_loses_no_fare_of_a_pack(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1, pack_fares=6)
    record = Record(pack_used=1, pack_used_this_month=1)
    async with a_gate(url, record) as gate:
        assert [await run(gate, an_ask(limits)) for _ in range(3)] == ["quota", "pack", "pack"]
        holds = [await gate.admit(an_ask(limits)) for _ in range(2)]
        await gate.flush(2)
        peek.flushall()
        assert [await run(gate, an_ask(limits)) for _ in range(2)] == ["pack", "refused"]
        for hold in holds:
            with hold:
                hold.settle("voided", "engine_broke", pack_event(hold.ask))
        await gate.flush(2)
    assert counters(peek, an_ask()) == (1, 4, 4, 0)


async def test_a_dead_gateways_fares_come_back_to_the_pack(url: str, peek: Peek) -> None:
    limits = Numbers(quota=0, pack_fares=2)
    async with a_gate(url, lease_ms=1000) as living:
        async with a_gate(url, lease_ms=1000) as dying:
            for _ in range(2):
                await dying.admit(an_ask(limits))
        assert await run(living, an_ask(limits)) == "refused"
        peek.hset(shard_at().epoch, "since", 1)
        await asyncio.sleep(1.0)
        await living.sweeper.sweep()
        assert await run(living, an_ask(limits)) == "pack"
        await living.flush(2)
    ends = [(fields[b"v"], orjson.loads(fields[b"e"])["from_pack"]) for _, fields in peek.xrange(shard_at().events)]
    assert ends == [(b"expired", True), (b"expired", True), (b"posted", True)]
    assert counters(peek, an_ask()) == (0, 1, 1, 0)


async def test_an_account_that_was_warm_before_it_had_a_pack_learns_what_was_used_of_others(url: str) -> None:
    record = Record(pack_used=3, pack_used_this_month=1)
    async with a_gate(url, record) as gate:
        assert [await run(gate, an_ask(Numbers(quota=1))) for _ in range(2)] == ["quota", "refused"]
        limits = Numbers(quota=1, pack_fares=5, pack_fares_per_month=9)
        assert [await run(gate, an_ask(limits, version=2)) for _ in range(3)] == ["pack", "pack", "refused"]
        assert len(record.asked) == 2
        found = await gate.usage(ACCOUNT, an_ask().key, limits)
    assert found.packs == PacksUsed(5, 5, 9, 3)
    assert (found.packs.left, found.packs.left_this_month) == (0, 6)


async def test_a_flood_beyond_quota_and_packs_runs_no_script_until_one_is_bought(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1, pack_fares=1)
    async with a_gate(url) as gate:
        assert [await run(gate, an_ask(limits)) for _ in range(3)] == ["quota", "pack", "refused"]
        await gate.flush(2)
        with pytest.raises(QuotaUsedUp) as by_note:
            await gate.spent.check(an_ask(limits))
        assert by_note.value.packs == PacksUsed(1, 1, -1, 1)
        await asyncio.sleep(spent.FRESH_SECONDS)
        with pytest.raises(QuotaUsedUp):
            await gate.spent.check(an_ask(limits))
        peek.hset(shard_at().account(ACCOUNT), "b", 0)  # a call that the pack had paid failed elsewhere
        await asyncio.sleep(spent.FRESH_SECONDS)
        await gate.spent.check(an_ask(limits))
        await gate.spent.check(an_ask(Numbers(quota=1, pack_fares=9), version=2))


def commands(peek: Peek) -> Counter[str]:
    return Counter({name: stats["calls"] for name, stats in peek.info("commandstats").items()})


async def commands_of(gate: Gate, peek: Peek, limits: Numbers, verdict: str = "posted") -> int:
    before = commands(peek)
    await run(gate, an_ask(limits), verdict)
    await gate.flush(2)
    after = commands(peek)
    after.subtract(before)
    return sum(calls for name, calls in after.items() if name not in ("cmdstat_info", "cmdstat_evalsha"))


async def test_a_pack_makes_no_call_within_the_quota_dearer(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        await gate.leases.close()  # its beat and the sweep run commands of their own
        await gate.sweeper.close()
        for numbers in (Numbers(quota=9), Numbers(quota=0, pack_fares=99)):
            for shard in gate.shards:
                shard.leased_until = float("inf")
            await gate._valkey.script(*lease(gate))
            await run(gate, an_ask(numbers))  # seeds
            await gate.flush(2)
        without = [await commands_of(gate, peek, Numbers(quota=99), verdict) for verdict in ("posted", "voided")]
        within = [await commands_of(gate, peek, Numbers(quota=99, pack_fares=9), verdict) for verdict in ("posted", "voided")]
        beyond = [await commands_of(gate, peek, Numbers(quota=0, pack_fares=99), verdict) for verdict in ("posted", "voided")]
    assert within == without
    # What they are is read and written beside the quota, and given back each in its own.
    assert [more - fewer for more, fewer in zip(beyond, without, strict=True)] == [2, 5]


def lease(gate: Gate) -> tuple[Any, ...]:
    from gateway.limits import scripts

    shard = gate.shards[shard_at().number]
    return scripts.LEASE, (shard.epoch, shard.leases, shard.wm), (gate._gateway, 60_000)
