"""One installation with one stand-in engine and one gateway, attacked by all tests of this folder; each has a key of its own."""

from collections.abc import Iterator

import pytest

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import BuildTown, Running, Town


@pytest.fixture(scope="package")
def engine() -> Iterator[StandInEngine]:
    running = start_stand_in_engine(model=MODEL)
    yield running
    running.kill()


@pytest.fixture(scope="package")
def faregate(build_town: BuildTown, engine: StandInEngine) -> Iterator[Town]:
    with build_town(engine.fleet_entry()) as built:
        yield built


@pytest.fixture(scope="package")
def gateway(faregate: Town) -> Running:
    return faregate.gateway()
