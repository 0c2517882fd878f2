"""The client's suite runs on both event loops, and every test must leave no socket open."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from backends.client import EngineClient, Patience


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
async def client() -> AsyncIterator[EngineClient]:
    client = EngineClient()
    yield client
    await client.close()
    assert client.open_connections == 0


@pytest.fixture
async def hasty() -> AsyncIterator[EngineClient]:
    """A client that loses its patience within a fraction of a second."""
    client = EngineClient(Patience(connect=0.2, first_byte=0.2, between_bytes=0.2, idle=0.2))
    yield client
    await client.close()
    assert client.open_connections == 0
