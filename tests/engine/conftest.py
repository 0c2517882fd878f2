"""The real vLLM, llama.cpp, and one gateway in front of vLLM, each started once for the session."""

from collections.abc import Iterator

import pytest

from gateway.local.llamacpp import LlamaCpp
from gateway.local.ports import free_port
from tests.engine.place import Place
from tests.engine.vllm import CHAT, CONTEXT_TOKENS, VECTORS, Vllm, chat_engine, running, vector_engine
from tests.support.gateway import BuildTown, Town
from tests.support.services import scratch

# The catalogue's reranker; the small BERT stands in for its weights, behind the real engine's endpoints.
RERANKER = "bge-reranker-v2-m3"


@pytest.fixture(scope="session")
def place() -> Place:
    place = Place.of_this_machine()
    if not place.is_ready:
        pytest.fail("vLLM is not installed for these tests: `make test-engine` does it", pytrace=False)
    return place


@pytest.fixture(scope="session")
def vllm(place: Place) -> Iterator[Vllm]:
    """With SmolLM2, and every flag that tests need."""
    with scratch("vllm") as folder, running(chat_engine(place, folder)) as engine:
        yield engine


@pytest.fixture(scope="session")
def vectors(place: Place, vllm: Vllm) -> Iterator[Vllm]:
    """With a BERT; after the other one, since two that start at once take longer than one after the other."""
    with scratch("vectors") as folder, running(vector_engine(place, folder)) as engine:
        yield engine


@pytest.fixture(scope="session")
def llamacpp() -> Iterator[LlamaCpp]:
    """As `make up` starts it."""
    with scratch("llamacpp") as folder:
        engine = LlamaCpp(folder, free_port())
        process = engine.start()
        try:
            yield engine
        finally:
            engine.stop(process)


@pytest.fixture(scope="session")
def faregate(vllm: Vllm, vectors: Vllm, build_town: BuildTown) -> Iterator[Town]:
    """One gateway and worker in front of both engines; each test makes its own customer."""
    with build_town(_fleet(vllm, vectors)) as built:
        built.standing = built.gateway()
        built.worker()
        yield built


def _fleet(vllm: Vllm, vectors: Vllm) -> str:
    return "".join(
        (
            _entry("chat", CHAT, vllm, f"context = {CONTEXT_TOKENS}\npriority = true\n"),
            _entry("embedder", VECTORS, vectors),
            _entry("reranker", RERANKER, vectors, f'engine_model = "{VECTORS}"\n'),
        )
    )


def _entry(name: str, model: str, engine: Vllm, more: str = "") -> str:
    return f'[[replica]]\nid = "{name}"\nmodel = "{model}"\nengine = "vllm"\nurl = "{engine.url}"\nslots = 16\n{more}'
