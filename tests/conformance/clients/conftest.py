"""One gateway in front of two stand-in engines, a chat model's and an embedding model's; each test has a machine and a key."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.conformance.clients.counting import Counted
from tests.conformance.clients.programs import Machine
from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import BuildTown, Customer, Running, Town, wait_for

EMBEDDER = "all-minilm-l6-v2"


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[StandInEngine, StandInEngine]]:
    started = start_stand_in_engine(model=MODEL), start_stand_in_engine(model=EMBEDDER)
    yield started
    for engine in started:
        engine.kill()


@pytest.fixture(scope="module")
def installation(build_town: BuildTown, engines: tuple[StandInEngine, StandInEngine]) -> Iterator[Town]:
    with build_town("".join(engine.fleet_entry(engine.model) for engine in engines)) as built:
        built.standing = built.gateway()
        yield built


@pytest.fixture
def counted(installation: Town, engines: tuple[StandInEngine, StandInEngine]) -> Callable[..., Counted]:
    """`counted(customer, gateway=None)`: from now on. A good call has closed the breaker that an earlier test may have opened."""
    standing = installation.gateway()
    url, headers = f"{standing.url}/v1/chat/completions", installation.key().headers
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    wait_for(lambda: httpx2.post(url, json=body, headers=headers).status_code == 200, 40)
    engines[0].reset_journal()

    def count(customer: Customer, gateway: Running | None = None) -> Counted:
        return Counted(installation, engines[0], customer, gateway or standing)

    return count


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
