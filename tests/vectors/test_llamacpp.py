"""Embeddings of a real engine, llama.cpp with the model of `make up`, through the gateway."""

import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest
from openai import BadRequestError, OpenAI

from gateway.local.llamacpp import is_healthy
from gateway.local.ports import free_port
from tests.support.gateway import ROOT, BuildTown, Town, wait_for
from tests.support.stream import settled
from tests.vectors.conftest import EMBEDDER, RERANKER

# Of SmolLM2 135M.
DIMENSIONS = 576


@pytest.fixture(scope="module")
def embedder() -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "tests.support.llamacpp_embedder", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: process.poll() is not None or is_healthy(port), 40)
        yield port
        process.terminate()


@pytest.fixture(scope="module")
def embedding_town(build_town: BuildTown, embedder: int) -> Iterator[Town]:
    fleet = "".join(
        f'[[replica]]\nid = "{model}"\nmodel = "{model}"\nengine = "llamacpp"\nurl = "http://127.0.0.1:{embedder}"\nslots = 2\n'
        for model in (EMBEDDER, RERANKER)
    )
    with build_town(fleet) as built:
        built.standing = built.gateway()
        yield built


def test_numbers_and_base64_are_the_same_vectors(embedding_town: Town) -> None:
    customer = embedding_town.key("free")
    texts = ["the sky is blue", "bread is baked"]
    with OpenAI(base_url=f"{embedding_town.gateway().url}/v1", api_key=customer.token) as client:
        packed = client.embeddings.create(model=EMBEDDER, input=texts)
        plain = client.embeddings.create(model=EMBEDDER, input=texts, encoding_format="float")
    assert [len(item.embedding) for item in packed.data] == [DIMENSIONS] * 2
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    wait_for(lambda: len(settled(embedding_town.redis_url, customer)) == 2)
    counted = [event.event["prompt_tokens"] for event in settled(embedding_town.redis_url, customer)]
    assert counted == [packed.usage.prompt_tokens, plain.usage.prompt_tokens]


def test_dimensions_that_it_would_ignore_are_refused(embedding_town: Town) -> None:
    customer = embedding_town.key("free")
    with (
        OpenAI(base_url=f"{embedding_town.gateway().url}/v1", api_key=customer.token) as client,
        pytest.raises(BadRequestError) as caught,
    ):
        client.embeddings.create(model=EMBEDDER, input="x", dimensions=16)
    assert caught.value.param == "dimensions"
    wait_for(lambda: settled(embedding_town.redis_url, customer))
    assert [event.verdict for event in settled(embedding_town.redis_url, customer)] == ["voided"]


def test_a_text_that_is_too_long_is_the_clients_to_shorten(embedding_town: Town) -> None:
    """It answers 500 to it: five of them would have closed the replica for everybody."""
    customer = embedding_town.key()
    url, headers = f"{embedding_town.gateway().url}/v1/embeddings", customer.headers
    for _ in range(8):
        answer = httpx2.post(url, json={"model": EMBEDDER, "input": "word " * 3000}, headers=headers, timeout=20)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert httpx2.post(url, json={"model": EMBEDDER, "input": "word"}, headers=headers, timeout=20).status_code == 200


def test_what_llamacpp_does_not_have_is_said_before_it_is_asked(embedding_town: Town) -> None:
    url, headers = f"{embedding_town.gateway().url}/v1/score", embedding_town.key().headers
    answer = httpx2.post(url, json={"model": RERANKER, "text_1": "a", "text_2": "b"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "model_not_for_endpoint")
    assert "No model here is." in answer.json()["error"]["message"]
