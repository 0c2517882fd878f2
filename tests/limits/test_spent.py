"""A key whose quota is used up: refused by its counter, without a script, until anything changes."""

import asyncio
from typing import Any

import pytest

from gateway.clock import DAY_MS
from gateway.limits import spent
from gateway.limits.gate import Gate, QuotaUsedUp
from gateway.limits.hold import Ask
from gateway.limits.policy import Numbers, beyond
from tests.limits.house import ACCOUNT, KEY, a_gate, an_ask, event_of, serve, shard_at

Peek = Any


def commands(peek: Peek) -> tuple[int, int]:
    """Scripts and reads that the server has run so far."""
    stats = peek.info("commandstats")
    return tuple(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "hmget"))


async def is_refused(gate: Gate, ask: Ask) -> bool:
    try:
        await gate.spent.check(ask)
    except QuotaUsedUp:
        return True
    return False


async def use_up(gate: Gate, limits: Numbers, fares: int = 1) -> None:
    await serve(gate, an_ask(limits, fare=fares))
    with pytest.raises(QuotaUsedUp):
        await gate.admit(an_ask(limits))


async def test_a_flood_on_a_spent_key_runs_no_script(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1)
    async with a_gate(url) as gate:
        assert not await is_refused(gate, an_ask(limits))
        await use_up(gate, limits)
        await gate.flush(2)
        await gate.leases.close()  # its beat and the sweep run scripts of their own
        await gate.sweeper.close()
        scripts, reads = commands(peek)
        for _ in range(3):
            assert all(await asyncio.gather(*(is_refused(gate, an_ask(limits)) for _ in range(500))))
            await asyncio.sleep(spent.FRESH_SECONDS)
        now_scripts, now_reads = commands(peek)
    assert now_scripts == scripts
    assert now_reads - reads < 60  # two at a time, for 1,500 calls


async def test_it_says_what_the_script_said(url: str) -> None:
    limits = Numbers(quota=4)
    async with a_gate(url) as gate:
        await serve(gate, an_ask(limits, fare=3))
        with pytest.raises(QuotaUsedUp) as by_script:
            await gate.admit(an_ask(limits, fare=2))
        with pytest.raises(QuotaUsedUp) as by_note:
            await gate.spent.check(an_ask(limits, fare=2))
        assert vars(by_note.value) == vars(by_script.value)
        assert (by_note.value.used, by_note.value.limit, by_note.value.scope) == (3, 4, "account")
        await gate.spent.check(an_ask(limits, fare=1))  # a smaller one still fits


async def test_a_fare_that_came_back_is_seen(url: str) -> None:
    limits = Numbers(quota=1)
    async with a_gate(url) as gate, a_gate(url) as other:
        ask = an_ask(limits)
        with await other.admit(ask) as hold:
            with pytest.raises(QuotaUsedUp):
                await gate.admit(an_ask(limits))
            hold.settle("voided", "engine_broke", event_of(ask))
        await other.flush(2)
        await asyncio.sleep(spent.FRESH_SECONDS)
        assert not await is_refused(gate, an_ask(limits))
        await serve(gate, an_ask(limits))


async def test_a_new_version_of_the_account_drops_the_note(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1)
    async with a_gate(url) as gate:
        await use_up(gate, limits)
        assert await is_refused(gate, an_ask(limits))
        assert not await is_refused(gate, an_ask(limits, version=2))  # read anew
        await use_up_again(gate, limits)
        peek.hset(shard_at().account(ACCOUNT), "v", 2)
        await asyncio.sleep(spent.FRESH_SECONDS)
        assert not await is_refused(gate, an_ask(limits))  # an old snapshot goes to the gate, which finds it out
        assert len(gate.spent) == 0


async def use_up_again(gate: Gate, limits: Numbers) -> None:
    with pytest.raises(QuotaUsedUp):
        await gate.admit(an_ask(limits))
    assert len(gate.spent) == 1


async def test_the_next_day_and_a_server_that_forgot_drop_the_note(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1)
    async with a_gate(url) as gate:
        await use_up(gate, limits)
        tomorrow = an_ask(limits).at_ms + DAY_MS
        assert not await is_refused(gate, an_ask(limits, at_ms=tomorrow))
        await use_up_again(gate, limits)
        peek.delete(shard_at().account(ACCOUNT))
        await asyncio.sleep(spent.FRESH_SECONDS)
        assert not await is_refused(gate, an_ask(limits))
        assert len(gate.spent) == 0


async def test_a_keys_own_cap_is_noted_for_that_key_alone(url: str) -> None:
    capped, free = Numbers(quota=9, key_quota=1), Numbers(quota=9)
    async with a_gate(url) as gate:
        await use_up(gate, capped)
        assert await is_refused(gate, an_ask(capped))
        await asyncio.sleep(spent.FRESH_SECONDS)
        assert await is_refused(gate, an_ask(capped))
        assert not await is_refused(gate, an_ask(free, key=KEY[:-1] + "b"))


async def test_without_valkey_the_gate_is_asked(url: str) -> None:
    limits = Numbers(quota=1)
    async with a_gate(url) as gate:
        await use_up(gate, limits)
        await gate._valkey.close()
        await asyncio.sleep(spent.FRESH_SECONDS)
        assert not await is_refused(gate, an_ask(limits))


async def test_notes_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spent, "NOTES_MAX", 3)
    async with a_gate(url) as gate:
        for number in range(5):
            gate.spent.note(an_ask(Numbers(quota=1), account=f"a{number}"), QuotaUsedUp("account", 1, 1, 0))
        assert len(gate.spent) == 3
        assert await is_refused(gate, an_ask(Numbers(quota=1), account="a4"))


@pytest.mark.parametrize(("key_quota", "fare", "left"), [(-1, 3, -1), (10, 3, 7), (3, 3, 0), (2, 3, None)])
def test_beyond_the_quota_a_keys_own_cap_still_holds(key_quota: int, fare: int, left: int | None) -> None:
    limits = Numbers(quota=5, key_quota=key_quota, rpm=7, concurrency=2, free_hangups=20)
    slow = beyond(limits, fare)
    assert (None if slow is None else slow.key_quota) == left
    if slow is not None:
        assert (slow.quota, slow.rpm, slow.concurrency, slow.free_hangups) == (-1, 7, 2, 20)


async def test_a_call_beyond_the_quota_is_held_and_moves_no_counter(url: str, peek: Peek) -> None:
    limits = Numbers(quota=1, key_quota=5, concurrency=1)
    async with a_gate(url) as gate:
        await use_up(gate, limits)
        slow = beyond(limits, 1)
        assert slow is not None
        for _ in range(8):
            ask = an_ask(slow, fare=0)
            with await gate.admit(ask) as hold:
                hold.settle("posted", "answered", event_of(ask))
            await gate.flush(2)
    counters = peek.hgetall(shard_at().account(ACCOUNT))
    assert (counters[f"u{ask.day}".encode()], counters[b"open"]) == (b"1", b"0")
    assert len(peek.xrange(shard_at().events)) == 9
