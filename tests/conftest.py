"""Fixtures that every suite shares: real servers, and a database and a Valkey that are clean for each test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from tests.support.engine_fixture import stand_in_engine as stand_in_engine
from tests.support.gateway import BuildTown, Town, town
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


@pytest.fixture(scope="session")
def build_town(
    postgres_server: PostgresServer, valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> BuildTown:
    """`with build_town(fleet) as built`: an installation that several tests share; it begins with an empty Valkey."""

    @contextmanager
    def build(fleet: str) -> Iterator[Town]:
        with redis.Redis.from_url(valkey_server.url) as client:
            client.flushall()
        folder = tmp_path_factory.mktemp("town")
        with postgres_server.database() as database_url, town(database_url, valkey_server.url, folder, fleet) as built:
            yield built

    return build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a module starts for its tests is started once: they go to one worker (`--dist loadgroup`)."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None and _has_a_module_in_common(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _has_a_module_in_common(item: pytest.Function) -> bool:
    known = item._fixtureinfo.name2fixturedefs
    return any(known[name][-1].scope == "module" for name in item.fixturenames if name in known)
