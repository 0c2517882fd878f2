"""An installation with one stand-in engine, for journeys through the whole gateway."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, town

MODEL = "smollm2-135m-instruct"


@pytest.fixture
def engine(stand_in_engine: Callable[..., StandInEngine]) -> StandInEngine:
    return stand_in_engine(model=MODEL)


@pytest.fixture
def faregate(database_url: str, valkey_url: str, tmp_path: Path, engine: StandInEngine) -> Iterator[Town]:
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry()) as built:
        yield built
