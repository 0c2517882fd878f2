"""Probes against real processes: one that is well, one that is killed, one that hangs."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from backends.choose import Standing
from backends.client import EngineClient
from backends.fleet import Replica
from backends.probe import watch
from backends.readiness import Readiness
from tests.backends.client.raw_engine import raw_engine, saying
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
        self.readiness = Readiness()
        self._work = watch(client, replicas, self.readiness, every_seconds=0.05, patience_seconds=0.15)

    async def __aenter__(self) -> "Watching":
        self._task = asyncio.create_task(self._work)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, name: str, standing: Standing) -> None:
        async with asyncio.timeout(5):
            while self.readiness.standing(name) is not standing:
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
