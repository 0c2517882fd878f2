"""Admit, hold, settle on a real server: what is taken, what is refused, and what is left afterwards."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.clock import DAY_MS, Clock
from gateway.limits.gate import Gate, GateClosed, Hold, QuotaUsedUp, RateExceeded, SnapshotStale, TooManyOpenCalls
from gateway.limits.policy import Numbers
from tests.limits.house import ACCOUNT, Record, a_gate, an_ask, event_of, serve, shard_at

Peek = Any


async def attempt(gate: Gate, numbers: Numbers, at_ms: int | None = None) -> str:
    try:
        await serve(gate, an_ask(numbers, at_ms=at_ms))
    except QuotaUsedUp:
        return "quota"
    return "answered"


@pytest.mark.parametrize("gates", [1, 3])
async def test_a_quota_of_n_admits_exactly_n_however_many_ask_at_once(url: str, peek: Peek, gates: int) -> None:
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(a_gate(url)) for _ in range(gates)]
        outcomes = Counter(await asyncio.gather(*(attempt(opened[i % gates], Numbers(quota=60)) for i in range(200))))
        assert outcomes == {"answered": 60, "quota": 140}
        assert [await gate.flush(2) for gate in opened] == [0] * gates
    events = peek.xrange(shard_at().events)
    assert len({fields[b"id"] for _, fields in events}) == len(events) == 60
    assert {fields[b"v"] for _, fields in events} == {b"posted"}


async def test_a_hold_that_nobody_marked_is_voided_and_gives_everything_back(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        ask = an_ask(Numbers(quota=1, concurrency=1))
        with pytest.raises(ZeroDivisionError), await gate.admit(ask):
            raise ZeroDivisionError
        await serve(gate, an_ask(Numbers(quota=1, concurrency=1)))
        assert await gate.flush(2) == 0
    events = [fields for _, fields in peek.xrange(shard_at().events)]
    assert [(fields[b"v"], fields[b"r"]) for fields in events] == [(b"voided", b"internal_error"), (b"posted", b"answered")]
    assert not peek.keys("*:holds:*")
    counters = peek.hgetall(shard_at().account(ACCOUNT))
    assert (counters[f"u{ask.day}".encode()], counters[b"open"]) == (b"1", b"0")


async def test_the_hold_says_what_the_receipt_needs(url: str) -> None:
    async with a_gate(url) as gate:
        ask = an_ask(Numbers(quota=60, key_quota=10), fare=3)
        with await gate.admit(ask) as hold:
            assert (hold.limit, hold.used, hold.remaining) == (10, 3, 7)  # the key's own cap ends first
            assert hold.resets_at_ms == (ask.day + 1) * DAY_MS
        with await gate.admit(an_ask()) as hold:
            assert (hold.limit, hold.remaining) == (-1, -1)


async def test_an_end_is_taken_once_even_if_marked_and_left_twice(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        hold = await gate.admit(ask := an_ask())
        with hold:
            hold.settle("voided", "shed", event_of(ask))
            hold.settle("posted", "answered", event_of(ask))
        with hold:
            pass
        await gate.flush(2)
    assert [fields[b"v"] for _, fields in peek.xrange(shard_at().events)] == [b"voided"]


async def test_concurrency_is_what_is_open_now_and_refusals_take_nothing(url: str) -> None:
    async with a_gate(url) as gate:
        limits = Numbers(concurrency=2, quota=3)
        with await gate.admit(an_ask(limits)), await gate.admit(an_ask(limits)):
            for _ in range(5):
                with pytest.raises(TooManyOpenCalls) as refused:
                    await gate.admit(an_ask(limits))
            assert (refused.value.limit, refused.value.open) == (2, 2)
        await gate.flush(2)
        for _ in range(3):
            await serve(gate, an_ask(limits))
        with pytest.raises(QuotaUsedUp) as used_up:
            await gate.admit(an_ask(limits))
        assert (used_up.value.scope, used_up.value.limit, used_up.value.used) == ("account", 3, 3)


async def test_ten_a_minute_is_ten_at_once_and_then_one_every_six_seconds(url: str) -> None:
    async with a_gate(url) as gate:
        limits = Numbers(rpm=10, burst=10)
        for _ in range(10):
            await serve(gate, an_ask(limits))
        with pytest.raises(RateExceeded) as refused:
            await gate.admit(an_ask(limits))
        assert refused.value.scope == "account"
        assert 5000 < refused.value.retry_after_ms <= 6000


async def test_a_refused_call_does_not_push_the_next_one_away(url: str) -> None:
    async with a_gate(url) as gate:
        limits = Numbers(rpm=600, burst=1)  # one each 100 ms
        await serve(gate, an_ask(limits))
        for _ in range(20):
            with pytest.raises(RateExceeded):
                await gate.admit(an_ask(limits))
        await asyncio.sleep(0.11)
        await serve(gate, an_ask(limits))


async def test_a_keys_own_caps_hold_beside_the_accounts(url: str) -> None:
    async with a_gate(url) as gate:
        capped = Numbers(quota=100, key_quota=2)
        await serve(gate, an_ask(capped))
        await serve(gate, an_ask(capped))
        with pytest.raises(QuotaUsedUp) as refused:
            await gate.admit(an_ask(capped))
        assert (refused.value.scope, refused.value.limit) == ("key", 2)
        await serve(gate, an_ask(Numbers(quota=100), key="0196f0a0-0000-7000-8000-00000000000b"))


async def test_a_cap_that_is_set_later_finds_what_was_used_before(url: str) -> None:
    async with a_gate(url, Record()) as gate:
        await serve(gate, an_ask(Numbers(quota=9)))
        with pytest.raises(QuotaUsedUp):
            await gate.admit(an_ask(Numbers(quota=9, key_quota=1)))


async def test_an_older_snapshot_is_told_and_a_newer_one_tells_others(url: str) -> None:
    async with a_gate(url) as gate:
        await serve(gate, an_ask(version=7))
        with pytest.raises(SnapshotStale):
            await gate.admit(an_ask(version=6))
        await serve(gate, an_ask(version=7))


async def test_a_plan_that_grows_in_the_middle_of_the_day_counts_on_from_what_is_used(url: str) -> None:
    async with a_gate(url) as gate:
        small = [await attempt(gate, Numbers(quota=5)) for _ in range(8)]
        large = [await attempt(gate, Numbers(quota=8)) for _ in range(8)]
        assert (small.count("answered"), large.count("answered")) == (5, 3)


async def test_midnight_brings_a_new_quota_and_the_day_of_the_id_is_charged(url: str, peek: Peek) -> None:
    now = Clock().now_ms()
    to_midnight = DAY_MS - now % DAY_MS
    async with a_gate(url, offset_ms=to_midnight - 2000) as gate:  # 2 s before midnight
        before = now + to_midnight - 2000
        assert [await attempt(gate, Numbers(quota=2), before) for _ in range(3)] == ["answered", "answered", "quota"]
        after = before + 4000
        assert [await attempt(gate, Numbers(quota=2), after) for _ in range(3)] == ["answered", "answered", "quota"]
        assert await attempt(gate, Numbers(quota=3), before) == "answered"  # a late one of the old day
    day = before // DAY_MS
    counters = peek.hgetall(shard_at().account(ACCOUNT))
    assert (counters[f"u{day}".encode()], counters[f"u{day + 1}".encode()]) == (b"3", b"2")


async def test_days_before_yesterday_are_dropped(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        await serve(gate, ask := an_ask())
        account = shard_at().account(ACCOUNT)
        peek.hset(account, mapping={f"u{ask.day - 1}": 4, f"u{ask.day - 2}": 5, f"g{ask.day - 9}": 6})
        peek.hdel(account, f"u{ask.day}")
        peek.hset(account, "seeded", ask.day - 1)
        await serve(gate, an_ask())
        fields = peek.hkeys(account)
    assert f"u{ask.day - 1}".encode() in fields
    assert not {f"u{ask.day - 2}".encode(), f"g{ask.day - 9}".encode()} & set(fields)


async def test_an_id_from_another_minute_is_refused(url: str) -> None:
    async with a_gate(url) as gate:
        with pytest.raises(GateClosed, match="skew"):
            await gate.admit(an_ask(at_ms=Clock().now_ms() + 70_000))


async def test_hang_ups_are_free_up_to_their_number_a_day_and_billed_beyond(url: str, peek: Peek) -> None:
    limits = Numbers(quota=10, free_hangups=2)
    async with a_gate(url) as gate:
        for _ in range(4):
            await serve(gate, ask := an_ask(limits), "hangup", "left_before_output")
            await gate.flush(2)
    assert [fields[b"v"] for _, fields in peek.xrange(shard_at().events)] == [b"voided", b"voided", b"posted", b"posted"]
    assert peek.hget(shard_at().account(ACCOUNT), f"u{ask.day}") == b"2"


async def test_a_caller_that_leaves_while_it_asks_leaves_nothing_held(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        await serve(gate, an_ask())
        for delay in (0, 0.0001, 0.0005, 0.001, 0.002):
            leaving = asyncio.create_task(gate.admit(an_ask()))
            await asyncio.sleep(delay)
            leaving.cancel()
            try:
                hold: Hold = await leaving
            except asyncio.CancelledError:
                continue
            with hold:
                pass
        assert await gate.flush(2) == 0
    assert not peek.keys("*:holds:*")
    assert peek.hget(shard_at().account(ACCOUNT), "open") == b"0"


async def test_the_outbox_keeps_an_event_until_the_ledger_has_it(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        await serve(gate, an_ask())
        await gate.flush(2)
        await asyncio.sleep(0.7)
        assert gate.outbox.kept == 1
        shard = gate.shards[shard_at().number]
        last = peek.xrevrange(shard.events, count=1)[0][0].decode()
        peek.set(shard.wm, f"another-nonce {last}")
        await asyncio.sleep(0.7)
        assert gate.outbox.kept == 1
        peek.set(shard.wm, f"{shard.nonce} {last}")
        await asyncio.sleep(0.7)
        assert gate.outbox.kept == 0
