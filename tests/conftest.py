"""Fixtures that every suite shares: real servers, and a database and a Valkey that are clean for each test."""

from collections.abc import Iterator

import pytest
import redis

from tests.support.engine_fixture import stand_in_engine as stand_in_engine
from tests.support.services import PostgresServer, ValkeyServer, running_postgres, running_valkey


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    with running_valkey() as server:
        yield server


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """`postgresql://...` of a migrated, empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """`redis://...` of an empty Valkey."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
        client.script_flush()
    return valkey_server.url
