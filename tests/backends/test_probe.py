"""Probes against real processes: one that is well, one that is killed, one that hangs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from backends.capacity import Capacity
from backends.choose import Standing
from backends.client import EngineClient
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
        self._work = watch(client, self.roster, self.readiness, self.capacity, every_seconds=0.05, patience_seconds=0.15)

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
