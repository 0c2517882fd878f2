"""The connection: order, gathering, silence, loss and return, on a real server and on one that misbehaves."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import redis

from gateway.valkey import Script, Valkey, ValkeyRefused, ValkeyUnavailable
from tests.support.services import ValkeyServer, redis_program, running_valkey

ECHO = Script.of("return {KEYS[1], ARGV[1]}")


@pytest.fixture(scope="session", params=["valkey", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    program = None if request.param == "valkey" else redis_program()
    if request.param == "redis" and program is None:
        pytest.skip("no redis-server on this machine")
    with running_valkey(program) as running:
        yield running


@asynccontextmanager
async def connected(url: str, timeout_ms: int = 100) -> AsyncIterator[Valkey]:
    valkey = Valkey(url, timeout_ms)
    await valkey.start()
    try:
        yield valkey
    finally:
        await valkey.close()


async def until(what: object, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_every_reply_finds_its_own_command(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        answers = await asyncio.gather(*(valkey.call("ECHO", f"{i}".encode() * 50) for i in range(2000)))
        assert answers == [f"{i}".encode() * 50 for i in range(2000)]
        assert (valkey.run_id != "", valkey.connects, valkey.losses) == (True, 1, 0)


async def test_an_error_is_the_answer_of_its_command_alone(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        first, wrong, last = valkey.call("ECHO", "a"), valkey.call("NOSUCH"), valkey.call("ECHO", "b")
        with pytest.raises(ValkeyRefused, match="unknown command"):
            await wrong
        assert (await first, await last, valkey.connected) == (b"a", b"b", True)


async def test_a_script_that_the_server_forgot_is_taught_again(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        assert await valkey.script(ECHO, ["k"], ["1"]) == [b"k", b"1"]
        await valkey.call("SCRIPT", "FLUSH")
        answers = await asyncio.gather(*(valkey.script(ECHO, ["k"], [i]) for i in range(5)))
        assert answers == [[b"k", str(i).encode()] for i in range(5)]


async def test_an_abandoned_call_does_not_shift_the_others(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        calls = [valkey.call("ECHO", str(i)) for i in range(10)]
        for call in calls[::2]:
            call.cancel()
        assert await asyncio.gather(*calls[1::2]) == [str(i).encode() for i in range(1, 10, 2)]


async def test_silence_fails_all_that_wait_and_the_connection_returns(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            failed = await asyncio.gather(*(valkey.call("PING") for _ in range(10)), return_exceptions=True)
            assert 0.09 < time.monotonic() - began < 0.25
            assert all(isinstance(error, ValkeyUnavailable) and error.maybe_sent for error in failed)
            began = time.monotonic()
            with pytest.raises(ValkeyUnavailable) as refused:
                await valkey.call("PING")
            assert not refused.value.maybe_sent
            assert time.monotonic() - began < 0.01
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        await until(lambda: valkey.connected)
        assert await valkey.call("PING") == b"PONG"
        assert valkey.timeouts == 1


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_loop_that_was_busy_is_not_a_silent_server(server: ValkeyServer, loop: str) -> None:
    async def main() -> int:
        async with connected(server.url) as valkey:
            answers = [valkey.call("ECHO", b"x" * 1000) for _ in range(2000)]  # more than one read's worth
            await asyncio.sleep(0.005)
            time.sleep(0.3)  # noqa: ASYNC251 - the loop is meant to be stuck
            assert await asyncio.gather(*answers) == [b"x" * 1000] * 2000
            return valkey.timeouts

    if loop == "uvloop":
        import uvloop

        assert uvloop.run(main()) == 0
    else:
        assert asyncio.run(main()) == 0


async def test_listeners_speak_first_on_each_connection_and_a_restart_has_another_run_id(server: ValkeyServer) -> None:
    valkey = Valkey(server.url)
    order: list[bytes] = []

    def greet() -> None:
        valkey.call("ECHO", "first").add_done_callback(lambda done: order.append(done.result()))

    valkey.listeners.append(greet)
    await valkey.start()
    try:
        order.append(await valkey.call("ECHO", "then"))
        before = valkey.run_id
        server.process.end(grace_seconds=0)
        await until(lambda: not valkey.connected)
        with pytest.raises(ValkeyUnavailable):
            await valkey.call("PING")
        await asyncio.to_thread(server.start)
        await until(lambda: valkey.connected, 10)
        order.append(await valkey.call("ECHO", "then"))
        assert order == [b"first", b"then", b"first", b"then"]
        assert valkey.run_id != before
    finally:
        await valkey.close()


async def longest_stall(seconds: float) -> float:
    """How much too late this process woke, at the worst."""
    loop, worst = asyncio.get_running_loop(), 0.0
    until = loop.time() + seconds
    while (now := loop.time()) < until:
        await asyncio.sleep(0.01)
        worst = max(worst, loop.time() - now - 0.01)
    return worst


async def test_the_wait_between_attempts_grows_to_half_a_second_and_not_beyond() -> None:
    attempts: list[float] = []

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.append(time.monotonic())
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with connected(f"redis://127.0.0.1:{port}") as valkey:
        stood_still = await longest_stall(2.0)
        assert not valkey.connected
    listener.close()
    waits = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert waits[0] < 0.1
    assert 5 <= len(attempts) <= 8
    assert max(waits) < 0.6 + stood_still  # the machine itself may have


async def test_password_and_database_of_the_url_are_used(server: ValkeyServer) -> None:
    with redis.Redis.from_url(server.url) as admin:
        admin.config_set("requirepass", "s3cret/+")
    try:
        address = server.url.removeprefix("redis://").partition("/")[0]
        async with connected(f"redis://:s3cret%2F%2B@{address}/3") as valkey:
            await valkey.call("SET", "here", "1")
        with redis.Redis.from_url(f"redis://:s3cret%2F%2B@{address}/3") as other:
            assert other.get("here") == b"1"
        async with connected(f"redis://:wrong@{address}/0") as valkey:
            assert not valkey.connected
    finally:
        with redis.Redis.from_url(f"redis://:s3cret%2F%2B@{address}") as admin:
            admin.config_set("requirepass", "")


async def test_a_server_that_became_a_replica_is_left(server: ValkeyServer) -> None:
    async with connected(server.url) as valkey:
        with redis.Redis.from_url(server.url) as admin:
            try:
                admin.execute_command("REPLICAOF", "127.0.0.1", "1")
                with pytest.raises(ValkeyUnavailable, match="READONLY") as refused:
                    await valkey.call("SET", "x", "1")
                assert not refused.value.maybe_sent
                assert not valkey.connected
            finally:
                admin.execute_command("REPLICAOF", "NO", "ONE")
        await until(lambda: valkey.connected)
        await valkey.call("SET", "x", "1")


async def test_calls_of_one_tick_leave_in_one_write() -> None:
    reads: list[bytes] = []

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            if b"INFO" in data:
                self.transport.write(b"$8\r\nrun_id:x\r\n")
                return
            reads.append(data)
            self.transport.write(b"+PONG\r\n" * data.count(b"PING"))

    listener = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    async with connected(f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}") as valkey:
        assert await asyncio.gather(*(valkey.call("PING") for _ in range(50))) == [b"PONG"] * 50
    listener.close()
    assert len(reads) == 1


async def test_nonsense_from_the_server_drops_the_connection() -> None:
    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(b"$8\r\nrun_id:x\r\n" if b"INFO" in data else b"HTTP/1.1 400 Bad Request\r\n\r\n")

    listener = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    async with connected(f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}") as valkey:
        with pytest.raises(ValkeyUnavailable, match="protocol"):
            await valkey.call("PING")
    listener.close()


def test_a_url_of_another_kind_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="redis://"):
        Valkey("http://localhost")
