"""The servers that every test here runs on: Valkey, and Redis where the machine has it."""

from collections.abc import Iterator

import pytest
import redis

from tests.support.services import ValkeyServer, redis_program, running_valkey


@pytest.fixture(scope="session", params=["valkey", "redis"])
def live_server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    if request.param == "valkey":
        yield request.getfixturevalue("valkey_server")
        return
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server on this machine")
    with running_valkey(program) as server:
        yield server


@pytest.fixture
def url(live_server: ValkeyServer) -> str:
    """An empty server."""
    with redis.Redis.from_url(live_server.url) as client:
        client.flushall()
        client.script_flush()
    return live_server.url


@pytest.fixture
def peek(url: str) -> Iterator[redis.Redis]:
    """Another pair of eyes on the same server."""
    with redis.Redis.from_url(url) as client:
        yield client
