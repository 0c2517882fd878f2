"""The queue's suites run on Valkey, and on Redis itself where the machine has it."""

from collections.abc import Iterator

import pytest
import redis

from tests.support.services import ValkeyServer, redis_program, running_valkey


@pytest.fixture(scope="session")
def redis_server() -> Iterator[ValkeyServer | None]:
    program = redis_program()
    if program is None:
        yield None
        return
    with running_valkey(program) as server:
        yield server


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> ValkeyServer:
    """Valkey alone, empty: for what the other suites have shown to be the same on both."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server


@pytest.fixture(params=["valkey", "redis"])
def server(request: pytest.FixtureRequest, valkey_server: ValkeyServer, redis_server: ValkeyServer | None) -> ValkeyServer:
    """An empty server that the test may stop and start, but must leave running."""
    found = valkey_server if request.param == "valkey" else redis_server
    if found is None:
        pytest.skip("no redis-server here")
    with redis.Redis.from_url(found.url) as client:
        client.flushall()
    return found
