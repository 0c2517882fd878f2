"""Slots when something dies: a gateway, Valkey's memory, Valkey itself, or only its attention."""

import asyncio
import os
import signal
import sys

import pytest

from backends.slot import QueueUnavailable
from backends.slots import pool_keys
from tests.backends.queue.gateways import ONE, POOL, gateway, held, hold, line, looking, until
from tests.support.services import ValkeyServer

LEASE_MS = 1000


async def test_a_dead_gateways_slots_and_places_go_with_its_lease(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a, gateway(server.url, "b", LEASE_MS) as b:
        with looking(server.url) as client:
            slot = b.queue.slot(POOL, "lost")
            await slot.take(ONE, 1, 5)
            place = asyncio.create_task(hold(b, "lost-too", 0))
            await until(lambda: line(client) == ["lost-too"])
            waiter = asyncio.create_task(hold(a, "waiter", 1))
            await until(lambda: line(client) == ["lost-too", "waiter"])
            await b.die()
            place.cancel()
            await until(lambda: held(client) == {"waiter": "one"}, 4)
            assert line(client) == []
            await waiter


async def test_a_gateway_killed_in_its_sleep_frees_its_slot(server: ValkeyServer) -> None:
    code = (
        "import asyncio, sys\n"
        "from tests.backends.queue.gateways import Gateway, hold\n"
        "async def main():\n"
        f"    b = Gateway({server.url!r}, 'b', {LEASE_MS}, None)\n"
        "    await b.start()\n"
        "    await hold(b, 'lost', 60, lambda _: print('held', flush=True))\n"
        "asyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"held\n"
        async with gateway(server.url, "a") as a:
            waiter = asyncio.create_task(hold(a, "waiter", 0))
            await asyncio.sleep(0.2)
            assert not waiter.done()
            child.kill()
            assert await until(waiter.done) < 4
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_flush_forgets_neither_running_calls_nor_the_order_of_the_line(server: ValkeyServer) -> None:
    order: list[str] = []
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 5)
                calls = []
                for number in (2, 1, 3):
                    calls.append(asyncio.create_task(hold(a, f"r{number}", 0.01, order.append)))
                    await until(lambda: len(line(client)) == len(calls))
                    await asyncio.sleep(0.01)
                client.flushall()
                await until(lambda: line(client) == ["r2", "r1", "r3"] and held(client) == {"holder": "one"}, 3)
                assert order == []
            await asyncio.gather(*calls)
            assert order == ["r2", "r1", "r3"]
            await until(lambda: not held(client))


async def test_a_flush_does_not_let_a_gateway_overload_an_engine(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "holder") as holder, a.queue.slot(POOL, "next") as following:
            await holder.take(ONE, 1, 5)
            client.flushall()
            assert await following.try_now(ONE) is None


async def test_what_a_gateway_does_not_know_of_is_swept(server: ValkeyServer) -> None:
    async with gateway(server.url, "a") as a:
        with looking(server.url) as client, a.queue.slot(POOL, "mine") as mine:
            await mine.take([("two", 1)], 1, 5)
            client.hset(pool_keys(POOL, ())[0], "stray", "one a 1000")
            client.hset(pool_keys(POOL, ())[1], "one", 7)
            await until(lambda: held(client) == {"mine": "two"}, 3)
            assert client.hgetall(pool_keys(POOL, ())[1]) == {"two": "1"}
            await until(lambda: a.queue.counts["swept"] == 1)


async def test_while_valkey_does_not_answer_calls_fail_fast_and_what_they_asked_for_is_given_back(server: ValkeyServer) -> None:
    async with gateway(server.url, "a", timeout_ms=100) as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "warm") as warm:
                await warm.take(ONE, 1, 5)
            await until(lambda: not held(client))
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                started = asyncio.get_running_loop().time()
                with a.queue.slot(POOL, "unlucky") as slot, pytest.raises(QueueUnavailable):
                    await slot.take(ONE, 5, 5)
                assert asyncio.get_running_loop().time() - started < 0.5
                await asyncio.sleep(0.3)
                assert a.queue.releaser.owed() == 1
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            await until(lambda: a.queue.releaser.owed() == 0)
            await asyncio.sleep(0.1)
            assert held(client) == {}
            assert line(client) == []


async def test_a_waiter_keeps_its_place_through_a_short_silence(server: ValkeyServer) -> None:
    async with gateway(server.url, "a", timeout_ms=100) as a:
        with looking(server.url) as client:
            with a.queue.slot(POOL, "holder") as holder:
                await holder.take(ONE, 1, 5)
                waiter = asyncio.create_task(hold(a, "waiter", 0))
                await until(lambda: line(client) == ["waiter"])
                os.kill(server.process.pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(1.3)
                    assert not waiter.done()
                finally:
                    os.kill(server.process.pid, signal.SIGCONT)
                await asyncio.sleep(0.3)
            assert await until(waiter.done) < 3
            await waiter


async def test_valkey_killed_and_started_again_has_every_running_call_soon(server: ValkeyServer) -> None:
    async with gateway(server.url, "a", timeout_ms=100) as a:
        with a.queue.slot(POOL, "holder") as holder, a.queue.slot(POOL, "next") as following:
            await holder.take(ONE, 1, 5)
            os.kill(server.process.pid, signal.SIGKILL)
            with pytest.raises(QueueUnavailable):
                await following.take(ONE, 5, 5)
            server.start()
            with looking(server.url) as client:
                await until(lambda: held(client) == {"holder": "one"})
