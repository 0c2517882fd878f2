"""What is lost with a server, a gateway or an answer, and what must not be: holds, ends, and the count."""

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.limits.gate import Gate, GateClosed, QuotaUsedUp
from gateway.limits.policy import Numbers
from tests.limits.house import ACCOUNT, Record, a_gate, an_ask, event_of, serve, shard_at
from tests.support.services import ValkeyServer, redis_program, running_valkey

Peek = Any


@pytest.fixture(scope="session", params=["valkey", "redis"])
def own_server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """A server that these tests may freeze and kill."""
    program = None if request.param == "valkey" else redis_program()
    if request.param == "redis" and program is None:
        pytest.skip("no redis-server on this machine")
    with running_valkey(program) as server:
        yield server


@pytest.fixture
def victim(own_server: ValkeyServer) -> ValkeyServer:
    with redis.Redis.from_url(own_server.url) as client:
        client.flushall()
    return own_server


async def eventually(what: Any, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to be"
        await asyncio.sleep(0.02)


def ends(peek: Peek) -> dict[str, str]:
    """What the ledger will say: the first event of an id stands."""
    found: dict[str, str] = {}
    for _, fields in peek.xrange(shard_at().events):
        found.setdefault(fields[b"id"].decode(), fields[b"v"].decode())
    return found


def counters(peek: Peek) -> dict[str, int]:
    """Of the account: `u` of its only day, and `open`."""
    found = {field.decode(): value for field, value in peek.hgetall(shard_at().account(ACCOUNT)).items()}
    return {"u": sum(int(value) for field, value in found.items() if field[0] == "u"), "open": int(found.get("open", 0))}


@contextlib.contextmanager
def frozen(server: ValkeyServer) -> Iterator[None]:
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def killed(server: ValkeyServer) -> AsyncIterator[None]:
    server.process.end(grace_seconds=0)
    yield
    await asyncio.to_thread(server.start)


async def test_a_flush_loses_neither_holds_nor_ends(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        limits = Numbers(quota=6)
        for _ in range(2):
            await serve(gate, an_ask(limits))
        holds = [await gate.admit(an_ask(limits)) for _ in range(3)]
        await gate.flush(2)
        peek.flushall()
        await serve(gate, last := an_ask(limits))  # the sixth
        with pytest.raises(QuotaUsedUp) as refused:
            await gate.admit(an_ask(limits))
        assert refused.value.used == 6
        for hold in holds:
            with hold:
                hold.settle("voided", "engine_broke", event_of(hold.ask))
        assert await gate.flush(2) == 0
        assert counters(peek) == {"u": 3, "open": 0}
        assert Counter(ends(peek).values()) == {"posted": 3, "voided": 3}
        assert ends(peek)[last.request_id] == "posted"


async def test_a_flush_is_noticed_without_any_call(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        with await gate.admit(an_ask()) as hold:
            peek.flushall()
            await eventually(lambda: peek.hexists(gate.shards[shard_at().number].holds, hold.request_id))
        await serve(gate, an_ask())


async def test_a_frozen_server_refuses_in_a_moment_and_what_it_did_all_the_same_is_given_back(victim: ValkeyServer) -> None:
    async with a_gate(victim.url) as gate:
        await serve(gate, an_ask())
        await gate.flush(2)
        with frozen(victim):
            began = time.monotonic()
            refused = await asyncio.gather(*(gate.admit(an_ask()) for _ in range(20)), return_exceptions=True)
            assert {type(error) for error in refused} == {GateClosed}
            assert time.monotonic() - began < 0.3
            began = time.monotonic()
            with pytest.raises(GateClosed, match="away"):
                await gate.admit(an_ask())
            assert time.monotonic() - began < 0.02
        assert await gate.flush(5) == 0
        with redis.Redis.from_url(victim.url) as peek:
            await eventually(lambda: not peek.keys("*:holds:*"))
            assert counters(peek) == {"u": 1, "open": 0}
            assert Counter(ends(peek).values()) == {"posted": 1, "voided": 20}


async def test_calls_that_end_while_the_server_is_dead_settle_when_it_is_back(victim: ValkeyServer) -> None:
    async with a_gate(victim.url, lease_ms=1000, opening_ms=300) as gate, a_gate(victim.url, lease_ms=1000) as other:
        holds = [await gate.admit(an_ask()) for _ in range(6)]
        async with killed(victim):
            for hold in holds[:3]:
                with hold:
                    hold.settle("posted", "answered", event_of(hold.ask))
            await eventually(lambda: not other._valkey.connected)
            with pytest.raises(GateClosed):
                await other.admit(an_ask())
            await asyncio.sleep(1.2)  # leases run out meanwhile; nobody may sweep the living for it
        assert await gate.flush(5) == 0
        await asyncio.sleep(1.2)
        for hold in holds[3:]:
            with hold:
                hold.settle("posted", "answered", event_of(hold.ask))
        await serve(gate, an_ask())
        assert await gate.flush(2) == 0
        assert (gate.outbox.late, other.sweeper.swept, gate.sweeper.swept) == (0, 0, 0)
        with redis.Redis.from_url(victim.url) as peek:
            assert counters(peek) == {"u": 7, "open": 0}
            assert Counter(ends(peek).values()) == {"posted": 7}
            assert not peek.keys("*:holds:*")


async def test_an_append_only_file_that_lost_its_tail_is_made_good(victim: ValkeyServer) -> None:
    async with a_gate(victim.url) as gate:
        limits = Numbers(quota=21)
        for _ in range(15):
            await serve(gate, an_ask(limits))
        holds = [await gate.admit(an_ask(limits)) for _ in range(5)]
        assert await gate.flush(2) == 0
        async with killed(victim):
            log = max((victim.valkey.folder / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
            with log.open("r+b") as file:
                file.truncate(log.stat().st_size * 6 // 10)
        for hold in holds:
            with hold:
                hold.settle("posted", "answered", event_of(hold.ask))
        await eventually(lambda: gate.outbox.unacknowledged == 0 and gate.leases.epochs > 0)
        outcomes = await asyncio.gather(*(serve(gate, an_ask(limits)) for _ in range(5)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(QuotaUsedUp) == 4
        assert await gate.flush(2) == 0
        with redis.Redis.from_url(victim.url) as peek:
            assert Counter(ends(peek).values()) == {"posted": 21}
            assert counters(peek) == {"u": 21, "open": 0}


async def test_a_dead_gateways_holds_expire_and_come_back_to_the_account(url: str, peek: Peek) -> None:
    async with a_gate(url, lease_ms=1000) as living:
        async with a_gate(url, lease_ms=1000) as dying:
            await serve(dying, an_ask(Numbers(quota=3)))
            await dying.flush(2)
            for _ in range(2):
                await dying.admit(an_ask(Numbers(quota=3, concurrency=2)))
        with pytest.raises(QuotaUsedUp):
            await living.admit(an_ask(Numbers(quota=3)))
        await eventually(lambda: living.sweeper.swept == 2)
        await serve(living, an_ask(Numbers(quota=3, concurrency=1)))
        await living.flush(2)
    assert Counter(ends(peek).values()) == {"posted": 2, "expired": 2}
    assert counters(peek) == {"u": 2, "open": 0}


async def test_a_gateway_that_wakes_after_it_was_swept_is_counted_as_late(url: str, peek: Peek) -> None:
    async with a_gate(url) as sleeper, a_gate(url) as other:
        hold = await sleeper.admit(an_ask())
        peek.hset(shard_at().epoch, "since", 1)
        peek.zadd(shard_at().leases, {sleeper.shards[0].holds.rpartition(":")[2]: 1})
        assert await other.sweeper.sweep() == 1
        with hold:
            hold.settle("posted", "answered", event_of(hold.ask))
        assert await sleeper.flush(2) == 0
        assert sleeper.outbox.late == 1
    assert list(ends(peek).values()) == ["expired"]
    assert counters(peek) == {"u": 0, "open": 0}


async def test_the_opening_second_is_waited_for_once_and_not_longer(url: str) -> None:
    async with a_gate(url, opening_ms=400) as gate:
        began = time.monotonic()
        await serve(gate, an_ask())
        assert 0.3 < time.monotonic() - began < 1.5


async def test_an_opening_that_lasts_too_long_says_when_to_come_back(url: str) -> None:
    async with a_gate(url, opening_ms=5000) as gate:
        began = time.monotonic()
        with pytest.raises(GateClosed) as refused:
            await gate.admit(an_ask())
        assert time.monotonic() - began < 1.5
        assert 3000 < refused.value.retry_after_ms <= 5000


async def test_no_server_at_the_start_is_no_error_and_calls_pass_when_it_comes(victim: ValkeyServer) -> None:
    victim.process.end(grace_seconds=0)
    try:
        async with a_gate(victim.url) as gate:
            with pytest.raises(GateClosed):
                await gate.admit(an_ask())
            await asyncio.to_thread(victim.start)
            await eventually(lambda: gate._valkey.connected)
            await serve(gate, an_ask())
    finally:
        if not victim.process.is_alive:
            victim.start()


async def test_a_full_memory_takes_no_calls_but_lets_the_running_ones_end(url: str, peek: Peek) -> None:
    async with a_gate(url) as gate:
        hold = await gate.admit(an_ask())
        try:
            peek.config_set("maxmemory", "1")
            with pytest.raises(GateClosed, match="refuses"):
                await gate.admit(an_ask())
            with hold:
                hold.settle("posted", "answered", event_of(hold.ask))
            assert await gate.flush(2) == 0
        finally:
            peek.config_set("maxmemory", "0")
        await serve(gate, an_ask())
        await gate.flush(2)
        assert Counter(ends(peek).values()) == {"posted": 2, "voided": 1}
        assert counters(peek) == {"u": 2, "open": 0}


CRASHES = {  # crash point -> what the ledger will say of the one call
    "gate:before_admit": [],
    "gate:after_admit": ["expired"],
    "outbox:before_settle": ["expired"],
    "outbox:after_settle": ["posted"],
}


@pytest.mark.parametrize("point", CRASHES)
async def test_a_gateway_killed_at_any_point_leaves_one_end(url: str, peek: Peek, point: str, tmp_path: Path) -> None:
    crashed = await asyncio.create_subprocess_exec(
        *_caller(url, "1"), env={**os.environ, "FAREGATE_CRASH_AT": point}, stdout=asyncio.subprocess.DEVNULL
    )
    assert await crashed.wait() == 137
    async with a_gate(url, lease_ms=1000) as gate:
        peek.hset(shard_at().epoch, "since", 1)
        await asyncio.sleep(1.0)
        await gate.sweeper.sweep()
    assert list(ends(peek).values()) == CRASHES[point]
    assert not peek.keys("*:holds:*")
    assert counters(peek) == {"u": CRASHES[point].count("posted"), "open": 0}


async def test_two_processes_share_a_quota_exactly(url: str, peek: Peek) -> None:
    callers = [await asyncio.create_subprocess_exec(*_caller(url, "100", "60"), stdout=asyncio.subprocess.PIPE) for _ in range(2)]
    printed = [(await caller.communicate())[0] for caller in callers]
    assert sum(int(line) for line in printed) == 60
    assert Counter(ends(peek).values()) == {"posted": 60}


def _caller(url: str, calls: str, quota: str = "-1") -> list[str]:
    import sys

    return [sys.executable, "-m", "tests.limits.caller", url, calls, quota]


class Slow(Record):
    async def __call__(self, account: str, key: str, day: int, candidates: Any) -> Record:
        await asyncio.sleep(0.05)
        return await super().__call__(account, key, day, candidates)


async def test_a_cold_counter_is_read_once_and_admits_just_what_is_left(url: str) -> None:
    record = Slow(used=57)
    async with a_gate(url, record) as one, a_gate(url, record) as two:

        async def attempt(gate: Gate) -> bool:
            try:
                await serve(gate, an_ask(Numbers(quota=60)))
            except QuotaUsedUp:
                return False
            return True

        assert sum(await asyncio.gather(*(attempt(gate) for gate in (one, two) for _ in range(40)))) == 3
    assert len(record.asked) == 2  # once in each


async def test_events_on_their_way_to_the_ledger_count_and_are_not_counted_twice(url: str, peek: Peek) -> None:
    record = Record()
    async with a_gate(url, record) as gate:
        asks = [an_ask(Numbers(quota=5)) for _ in range(4)]
        for ask in asks:
            await serve(gate, ask)
        with await gate.admit(an_ask(Numbers(quota=5))):
            await gate.flush(0)
            await eventually(lambda: gate.outbox.unacknowledged == 0)
            for known in (
                frozenset[str](),
                frozenset(ask.request_id for ask in asks[:3]),
                frozenset(ask.request_id for ask in asks),
            ):
                record.known, record.used = known, len(known)
                peek.delete(shard_at().account(ACCOUNT))
                with pytest.raises(QuotaUsedUp) as refused:
                    await gate.admit(an_ask(Numbers(quota=5)))
                assert refused.value.used == 5


async def test_rebuilding_while_calls_end_counts_each_once(url: str, peek: Peek) -> None:
    async with a_gate(url, Slow()) as gate:
        holds = [await gate.admit(an_ask(Numbers(quota=40))) for _ in range(30)]

        async def end(hold: Any, after: float) -> None:
            await asyncio.sleep(after)
            with hold:
                hold.settle("posted", "answered", event_of(hold.ask))

        peek.delete(shard_at().account(ACCOUNT))
        ending = [asyncio.create_task(end(hold, 0.01 * i)) for i, hold in enumerate(holds)]
        outcomes = await asyncio.gather(*(serve(gate, an_ask(Numbers(quota=40))) for _ in range(20)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(QuotaUsedUp) == 10
        await asyncio.gather(*ending)
        await gate.flush(2)
    assert counters(peek) == {"u": 40, "open": 0}


async def test_a_version_raised_while_the_record_was_read_is_not_lost(url: str, peek: Peek) -> None:
    from gateway.limits import scripts
    from gateway.limits.gate import SnapshotStale

    class Racing(Record):
        async def __call__(self, account: str, key: str, day: int, candidates: Any) -> Record:
            peek.eval(scripts.BUMP.text, 1, shard_at().account(ACCOUNT), 2)
            return self

    async with a_gate(url, Racing(version=1)) as gate:
        with pytest.raises(SnapshotStale):
            await gate.admit(an_ask(version=1))
        await serve(gate, an_ask(version=2))


async def test_a_record_that_cannot_be_read_closes_the_gate_and_takes_nothing(url: str, peek: Peek) -> None:
    from gateway.limits.rebuild import SourceUnavailable

    async def away(*_: object) -> Record:
        raise SourceUnavailable("no database")

    async with a_gate(url, away) as gate:
        with pytest.raises(GateClosed, match="no database"):
            await gate.admit(an_ask())
    assert counters(peek) == {"u": 0, "open": 0}
