"""One installation with one stand-in engine and one gateway, attacked by all tests of this folder; each has a key of its own."""

from collections.abc import Iterator

import pytest
import redis

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import Running, Town, town
from tests.support.services import PostgresServer, ValkeyServer


@pytest.fixture(scope="package")
def engine() -> Iterator[StandInEngine]:
    running = start_stand_in_engine(model=MODEL)
    yield running
    running.kill()


@pytest.fixture(scope="package")
def faregate(
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
    engine: StandInEngine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Town]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    with postgres_server.database() as database_url:
        folder = tmp_path_factory.mktemp("town")
        with town(database_url, valkey_server.url, folder, engine.fleet_entry()) as built:
            yield built


@pytest.fixture(scope="package")
def gateway(faregate: Town) -> Running:
    return faregate.gateway()
