"""Installations with a stand-in engine, for journeys through the whole gateway."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import BuildTown, Town, town

MODEL = "smollm2-135m-instruct"


@pytest.fixture
def engine(stand_in_engine: Callable[..., StandInEngine]) -> StandInEngine:
    return stand_in_engine(model=MODEL)


@pytest.fixture
def faregate(database_url: str, valkey_url: str, tmp_path: Path, engine: StandInEngine) -> Iterator[Town]:
    """An installation of the test's own; it starts the gateways that it needs."""
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry()) as built:
        yield built


@pytest.fixture(scope="module")
def standing_engine() -> Iterator[StandInEngine]:
    started = start_stand_in_engine(model=MODEL)
    yield started
    started.kill()


@pytest.fixture(scope="module")
def standing_town(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    """One installation and one running gateway for a whole module."""
    with build_town(standing_engine.fleet_entry()) as built:
        built.standing = built.gateway()
        yield built


@pytest.fixture
def shared(standing_town: Town, standing_engine: StandInEngine) -> Iterator[Town]:
    """The module's installation, its journal empty, without what earlier tests started; each test makes its own customer.

    A good call comes first: faults of the engine in one test must not add up with those of the next and open the breaker.
    """
    assert standing_town.standing is not None
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    url = f"{standing_town.standing.url}/v1/chat/completions"
    assert httpx2.post(url, json=body, headers=standing_town.key().headers).status_code == 200
    standing_engine.reset_journal()
    standing_town.customers.clear()
    yield standing_town
    for running in standing_town.processes[1:]:
        running.kill()
    del standing_town.processes[1:]
