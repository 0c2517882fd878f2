"""Slots between live gateways: at once when free, in order when not, and always given back."""

import asyncio
import random
from collections import Counter

import pytest

from backends.classes import DEFAULT_CLASSES
from backends.slot import PoolFull, WaitedTooLong
from backends.slots import grants_key, pool_keys, script_named, tombstone_key
from tests.backends.queue.gateways import ONE, POOL, DeafWakes, Gateway, cancelled, gateway, held, hold, line, looking, until
from tests.support.services import ValkeyServer


async def test_a_free_slot_is_granted_at_once_and_given_back_on_leaving(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "r1") as slot:
                assert await slot.try_now(ONE) == "one"
                assert await slot.take(ONE, 1, 1) == "one"
                assert held(client) == {"r1": "one"}
                assert a.queue.running(POOL) == 1
            assert a.queue.running(POOL) == 0
            await until(lambda: not held(client), 1)


async def test_the_first_preferred_replica_with_room_is_taken(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with a.queue.slot(POOL, "r1") as first, a.queue.slot(POOL, "r2") as second, a.queue.slot(POOL, "r3") as third:
            preference = [("two", 1), ("one", 2)]
            assert [await slot.take(preference, 1, 5) for slot in (first, second, third)] == ["two", "one", "one"]


async def test_waiters_of_two_gateways_are_served_in_the_order_they_came(server: ValkeyServer) -> None:
    order: list[str] = []
    async with gateway(server.url, "a") as a, gateway(server.url, "b") as b:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 100)
                calls = []
                for number in range(8):
                    owner = (a, b)[number % 2]
                    calls.append(asyncio.create_task(hold(owner, f"r{number}", 0.01, order.append)))
                    await until(lambda: len(line(client)) == len(calls))
                await asyncio.sleep(0.6)  # each has heard of the other with its beat, so wake-ups reach both
                assert order == []
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*calls)
            assert order == [f"r{number}" for number in range(8)]
            assert asyncio.get_running_loop().time() - started < 0.9, "a wake-up was missed: somebody waited for its poll"


async def test_a_try_never_stands_in_line_and_never_overtakes(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a, gateway(server.url, "b") as b:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 5)
                waiter = asyncio.create_task(hold(a, "waiter", 0.5))
                await until(lambda: line(client) == ["waiter"])
                with b.queue.slot(POOL, "tries") as tries:
                    assert await tries.try_now(ONE) is None
                assert line(client) == ["waiter"]
            await until(lambda: held(client) == {"waiter": "one"})
            with b.queue.slot(POOL, "again") as again:
                assert await again.try_now(ONE) is None
            await waiter


async def test_a_full_line_says_how_many_wait(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "holder") as holder:
            await holder.take(ONE, 1, 5)
            waiters = [asyncio.create_task(hold(a, f"r{number}", 0)) for number in range(2)]
            await until(lambda: len(line(client)) == 2)
            with a.queue.slot(POOL, "third") as third:
                with pytest.raises(PoolFull) as full:
                    await third.take(ONE, 1, 2)
                assert full.value.depth == 2
            for waiter in waiters:
                await cancelled(waiter)
            await until(lambda: line(client) == [])


async def test_a_wait_ends_in_time_and_leaves_no_place_behind(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "holder") as holder:
            await holder.take(ONE, 1, 5)
            started = asyncio.get_running_loop().time()
            with a.queue.slot(POOL, "late") as late:
                with pytest.raises(WaitedTooLong):
                    await late.take(ONE, 0.3, 5)
                assert 0.29 < asyncio.get_running_loop().time() - started < 0.6
                assert a.queue.waiting(POOL) == 1
            assert a.queue.waiting(POOL) == 0
            await until(lambda: line(client) == [], 1)


async def test_a_replica_that_joins_while_calls_wait_serves_the_first_of_them(server: ValkeyServer) -> None:
    replicas = list(ONE)
    async with gateway(server.url, "a") as a:
        with a.queue.slot(POOL, "holder") as holder, a.queue.slot(POOL, "waiter") as waiter:
            await holder.take(ONE, 1, 5)
            waiting = asyncio.create_task(waiter.take(lambda: replicas, 5, 5))
            await asyncio.sleep(0.1)
            replicas.append(("two", 1))
            assert await waiting == "two"


async def test_a_missed_wake_up_is_found_within_a_second(server: ValkeyServer) -> None:
    async with gateway(server.url, "a", wakes=DeafWakes()) as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 5)
                waiter = asyncio.create_task(hold(a, "waiter", 0))
                await until(lambda: line(client) == ["waiter"])
            assert await until(waiter.done) < 1.2


async def test_a_grant_for_a_waiter_who_is_gone_goes_on_to_the_next(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 5)
                acquire(client, "ghost", "one")
                waiter = asyncio.create_task(hold(a, "waiter", 0))
                await until(lambda: line(client) == ["ghost", "waiter"])
            assert await until(waiter.done) < 0.5


async def test_an_acquire_that_arrives_after_its_release_finds_the_door_closed(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "any") as slot:
            await slot.take(ONE, 1, 5)  # the gateway has a lease
            script(client, "release", "late", [1, -1])
            assert acquire(client, "late", "two") == ["gone"]


async def test_one_wake_up_for_each_slot_that_became_free(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "any") as slot:
            await slot.take([("two", 1)], 1, 5)
            for number in range(4):
                acquire(client, f"r{number}", "one")
            script(client, "release", "r0", [0, -1])
            assert client.lrange(grants_key(POOL, "a"), 0, -1) == ["grant r1 one"]
            script(client, "release", "r0", [0, -1])
            assert client.llen(grants_key(POOL, "a")) == 1
            for number in range(4):
                script(client, "release", f"r{number}", [0, -1])


async def test_pools_do_not_wait_for_each_other(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with a.queue.slot(POOL, "r1") as slot, a.queue.slot("other", "r2") as other:
            assert await slot.take(ONE, 1, 5) == await other.take(ONE, 1, 5) == "one"


async def test_calls_that_are_cut_off_anywhere_never_overload_a_replica_nor_leak_a_slot(server: ValkeyServer) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    dice = random.Random(seed)
    caps = {"one": 3, "two": 2}
    now_running: Counter[str] = Counter()
    peaks: Counter[str] = Counter()

    async def call(owner: Gateway, request: str) -> None:
        with owner.queue.slot(POOL, request) as slot:
            preference = list(caps.items())
            await slot.try_now(preference)
            replica = await slot.take(preference, 5, 1000)
            now_running[replica] += 1
            peaks[replica] = max(peaks[replica], now_running[replica])
            try:
                await asyncio.sleep(dice.random() * 0.02)
            finally:
                now_running[replica] -= 1

    async with gateway(server.url, "a") as a, gateway(server.url, "b") as b:
        calls = []
        for number in range(300):
            calls.append(asyncio.create_task(call(dice.choice((a, b)), f"r{number:03}")))
            if dice.random() < 0.4:
                asyncio.get_running_loop().call_later(dice.random() * 0.3, calls[-1].cancel)
            await asyncio.sleep(dice.random() * 0.002)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {type(None), asyncio.CancelledError}
        with looking(server.url) as client:
            await until(lambda: not held(client) and not line(client), 2)
            assert set(client.hgetall(pool_keys(POOL, ())[1]).values()) <= {"0"}
    assert all(peaks[replica] <= cap for replica, cap in caps.items()), peaks
    assert peaks == caps, "the load never filled the replicas, so this proved nothing"


def acquire(client: object, request: str, replica: str) -> list[str]:
    return script(client, "acquire", request, [3, "-", 0, 0, 0, 9, 5000, 0, replica, 1, 0])


def script(client: object, name: str, request: str, extra: list[str | int]) -> list[str]:
    """As gateway `a` would send it, whatever its own process thinks."""
    keys = [*pool_keys(POOL, ("a",)), tombstone_key(POOL, request)]
    rules = DEFAULT_CLASSES.packed
    return client.eval(script_named(name).text, len(keys), *keys, 0, "a", "a", rules, request, *extra)  # type: ignore[attr-defined,no-any-return]
