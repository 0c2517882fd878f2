"""An installation that serves a chat model, an embedding model and a reranker, and one running gateway for a module."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import BuildTown, Town

CHAT, EMBEDDER, RERANKER = "smollm2-135m-instruct", "all-minilm-l6-v2", "bge-reranker-v2-m3"
# The catalogue's price: so many inputs or documents for one fare.
ITEMS_PER_FARE = 100


def fleet(engine: StandInEngine) -> str:
    entry = engine.fleet_entry()
    return "".join(
        entry.replace('"stand-in"', f'"{kind}"').replace(f'model = "{engine.model}"', f'model = "{model}"')
        for kind, model in (("chat", CHAT), ("embedder", EMBEDDER), ("reranker", RERANKER))
    )


@pytest.fixture(scope="module")
def standing_engine() -> Iterator[StandInEngine]:
    started = start_stand_in_engine(model="served")
    yield started
    started.kill()


@pytest.fixture(scope="module")
def vector_town(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    """One running gateway; each test makes its own customer."""
    with build_town(fleet(standing_engine)) as built:
        built.standing = built.gateway()
        yield built


@pytest.fixture
def served(vector_town: Town, standing_engine: StandInEngine) -> Town:
    """Good calls come first: faults of the engine in one test must not add up with those of the next and open the breaker."""
    asked = {
        "/v1/embeddings": {"model": EMBEDDER, "input": "hi"},
        "/v1/rerank": {"model": RERANKER, "query": "hi", "documents": ["hi"]},
    }
    first = vector_town.customers[0] if vector_town.customers else vector_town.key()
    for path, body in asked.items():
        answer = httpx2.post(vector_town.gateway().url + path, json=body, headers=first.headers)
        assert answer.status_code == 200
    standing_engine.reset_journal()
    return vector_town
