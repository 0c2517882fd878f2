"""Probes against real processes: one that is well, one that is killed, one that hangs."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from backends.capacity import Capacity
from backends.choose import Standing
from backends.client import EngineClient
from backends.failures import EngineUnreachable
from backends.fleet import Fleet, Replica
from backends.probe import watch
from backends.readiness import Readiness
from backends.roster import Roster
from tests.backends.client.raw_engine import Peer, raw_engine, saying
from tests.support.engine_fixture import StandInEngine

StartEngine = Callable[..., StandInEngine]


@pytest.fixture
async def client() -> AsyncIterator[EngineClient]:
    client = EngineClient()
    yield client
    await client.close()
    assert client.open_connections == 0


class Watching:
    """Probes often while the block runs."""

    def __init__(self, client: EngineClient, *replicas: Replica) -> None:
        self.readiness, self.capacity = Readiness(), Capacity()
        self.roster = Roster(Fleet(replicas), self.readiness.unseen)
        self._work = watch(
            client, self.roster, self.readiness, self.capacity, every_seconds=0.05, patience_seconds=0.15, stuck_seconds=0.3
        )

    async def __aenter__(self) -> "Watching":
        self._task = asyncio.create_task(self._work)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, name: str, standing: Standing) -> None:
        await self.until_so(lambda: self.readiness.standing(name) is standing)

    async def until_so(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_so():
                assert not self._task.done()
                await asyncio.sleep(0.01)


async def test_a_killed_engine_is_found_and_found_again(client: EngineClient, stand_in_engine: StartEngine) -> None:
    engine, other = stand_in_engine(), stand_in_engine()
    async with Watching(client, engine.replica("a"), other.replica("b")) as watching:
        await asyncio.sleep(0.2)
        assert watching.readiness.standing("a") is Standing.READY
        engine.kill()
        await watching.until("a", Standing.BROKEN)
        assert watching.readiness.standing("b") is Standing.READY
        stand_in_engine(port=engine.port)
        await watching.until("a", Standing.READY)


async def test_a_hung_engine_is_found(client: EngineClient, stand_in_engine: StartEngine) -> None:
    engine = stand_in_engine()
    async with Watching(client, engine.replica("a")) as watching:
        await asyncio.sleep(0.1)
        engine.freeze()
        await watching.until("a", Standing.BROKEN)
        engine.thaw()
        await watching.until("a", Standing.READY)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Loading\r\ncontent-length: 0\r\n\r\n", b"nonsense\r\n\r\n"])
async def test_an_engine_that_says_that_it_is_not_well(client: EngineClient, answer: bytes) -> None:
    async with raw_engine(saying(answer)) as engine, Watching(client, engine.replica) as watching:
        await watching.until("raw", Standing.BROKEN)


async def unanswered(client: EngineClient, replica: Replica) -> None:
    """A call that nobody answers."""
    with client.open(replica, "/v1/chat/completions", b'{"messages": []}', ()) as answer:
        await answer.start()


async def test_calls_that_a_hung_engine_owes_an_answer_are_freed_to_go_elsewhere(
    client: EngineClient, stand_in_engine: StartEngine
) -> None:
    engine, other = stand_in_engine(), stand_in_engine()
    async with Watching(client, engine.replica("a"), other.replica("b")) as watching:
        await watching.until_so(lambda: watching.readiness.is_well("b"))
        engine.freeze()
        began = time.monotonic()
        with pytest.raises(EngineUnreachable, match="has stopped answering"):
            await unanswered(client, engine.replica("a"))
        assert 0.3 < time.monotonic() - began < 3
        assert watching.readiness.standing("a") is Standing.BROKEN


async def test_where_there_is_nowhere_else_to_go_a_hung_engines_calls_wait_on(
    client: EngineClient, stand_in_engine: StartEngine
) -> None:
    engine = stand_in_engine()
    async with Watching(client, engine.replica("a")) as watching:
        await watching.until_so(lambda: watching.readiness.is_well("a"))
        engine.freeze()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await unanswered(client, engine.replica("a"))


async def test_an_engine_that_is_well_by_its_own_word_and_takes_no_step_is_left(client: EngineClient) -> None:
    says = Reporting(steps(7))
    async with raw_engine(says) as engine, Watching(client, engine.replica) as watching:
        await watching.until("raw", Standing.BROKEN)
        assert not watching.readiness.is_well("raw")
        says.metrics = steps(8)
        await watching.until("raw", Standing.READY)
        says.metrics = page(b"200", b"vllm:num_requests_running 0\nvllm:iteration_tokens_total_count 8\n")
        await asyncio.sleep(0.5)
        assert watching.readiness.standing("raw") is Standing.READY


async def test_one_that_comes_back_starts_slowly(client: EngineClient, stand_in_engine: StartEngine) -> None:
    engine = stand_in_engine()
    replica = engine.replica("a", slots=64)
    async with Watching(client, replica) as watching:
        await watching.until_so(lambda: watching.readiness.is_well("a"))
        assert watching.capacity.cap(replica) == 64
        engine.kill()
        await watching.until("a", Standing.BROKEN)
        stand_in_engine(port=engine.port)
        caps: list[int] = []

        def is_back() -> bool:
            caps.append(watching.capacity.cap(replica))
            return watching.readiness.is_well("a") and caps[-1] == 64

        await watching.until_so(is_back)
        assert sorted(set(caps[caps.index(8) :])) == [8, 16, 32, 64]


async def test_one_that_comes_is_ready_when_it_was_seen_and_of_one_that_went_nothing_is_kept(
    client: EngineClient, stand_in_engine: StartEngine
) -> None:
    first, later = stand_in_engine(), stand_in_engine()
    async with Watching(client, first.replica("a")) as watching:
        await watching.until_so(lambda: watching.readiness.is_well("a"))
        watching.roster.found("group", [later.replica("b")])
        assert watching.readiness.standing("b") is Standing.BROKEN
        await watching.until("b", Standing.READY)
        assert client.open_connections == 2
        watching.roster.found("group", [])
        await watching.until_so(lambda: client.open_connections == 1)
        assert not watching.readiness.is_well("b")


def page(status: bytes, text: bytes) -> bytes:
    return b"HTTP/1.1 %b Said\r\ncontent-length: %d\r\n\r\n%b" % (status, len(text), text)


def steps(count: int) -> bytes:
    return page(b"200", b"vllm:num_requests_running 2\nvllm:iteration_tokens_total_count %d\n" % count)


BUSY = page(b"200", b"vllm:num_requests_running 2\nvllm:num_requests_waiting 9\n")
CALM = page(b"200", b"vllm:num_requests_running 2\nvllm:num_requests_waiting 0\n")
ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n" + b"x" * 5_000_000


@dataclass
class Reporting:
    """A socket that is healthy, and whose metrics page says what it is told to."""

    metrics: bytes

    async def __call__(self, peer: Peer) -> None:
        while True:
            head = await peer.request()
            peer.say(self.metrics if head.startswith(b"GET /metrics ") else page(b"200", b""))


async def test_an_engine_that_keeps_requests_waiting_gets_fewer_and_then_more_again(client: EngineClient) -> None:
    says = Reporting(BUSY)
    async with raw_engine(says) as engine, Watching(client, engine.replica) as watching:
        await watching.until_so(lambda: watching.capacity.tightened == {"raw": 2})
        says.metrics = CALM
        await watching.until_so(lambda: watching.capacity.tightened == {})


@pytest.mark.parametrize("metrics", [page(b"501", b"not started with --metrics"), page(b"200", b"<html>"), ENDLESS, b"?\r\n\r\n"])
async def test_a_page_that_says_nothing_freezes_the_cap_and_leaves_the_engine_well(client: EngineClient, metrics: bytes) -> None:
    says = Reporting(BUSY)
    async with raw_engine(says) as engine, Watching(client, engine.replica) as watching:
        await watching.until_so(lambda: watching.capacity.tightened == {"raw": 2})
        says.metrics = metrics
        age = watching.capacity.report_age(engine.replica)
        await watching.until_so(lambda: watching.capacity.report_age(engine.replica) > age + 0.3)
        assert watching.capacity.tightened == {"raw": 2}
        assert watching.readiness.standing("raw") is Standing.READY
