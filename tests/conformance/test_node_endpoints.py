"""openai-node on chat, text completions and embeddings, through the whole gateway."""

from typing import Any

import httpx2
import pytest

from tests.conformance.test_responses_failing import WHY
from tests.security.attacker import steered
from tests.support.gateway import Town
from tests.support.node import ask
from tests.vectors.conftest import CHAT, EMBEDDER, standing_engine, vector_town

__all__ = ["standing_engine", "vector_town"]
pytestmark = pytest.mark.clients
TEXT = "tok tok tok "


def openai_node(town: Town, endpoint: str, body: dict[str, Any], *, stream: bool = False) -> Any:
    base, key = f"{town.gateway().url}/v1", town.key().token
    return ask("openai_endpoints.mjs", base=base, key=key, endpoint=endpoint, ask=body, stream=stream)


def asked(endpoint: str, **script: Any) -> dict[str, Any]:
    messages = steered(**{"chunks": 3, **script})
    return {"model": CHAT, "messages": messages} if endpoint == "chat" else {"model": CHAT, "prompt": messages[0]["content"]}


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize("stream", [False, True])
def test_it_gets_its_answer(vector_town: Town, endpoint: str, stream: bool) -> None:
    found = openai_node(vector_town, endpoint, asked(endpoint), stream=stream)
    assert (found["text"], found["finish"]) == (TEXT, "stop")


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_it_raises_when_a_stream_breaks(vector_town: Town, endpoint: str) -> None:
    found = openai_node(vector_town, endpoint, asked(endpoint, error_after=2, pace_ms=30), stream=True)
    assert found["text"] == "tok tok "
    assert WHY in found["error"]["message"]


@pytest.mark.parametrize("asked_for", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_it_gets_the_numbers_in_each_format(vector_town: Town, asked_for: dict[str, str]) -> None:
    """Without a format it asks for base64 and decodes it."""
    found = openai_node(vector_town, "embeddings", {"model": EMBEDDER, "input": ["a cat", "a dog"], **asked_for})
    plain = httpx2.post(
        f"{vector_town.gateway().url}/v1/embeddings",
        json={"model": EMBEDDER, "input": ["a cat", "a dog"], "encoding_format": "float"},
        headers=vector_town.key().headers,
    ).json()["data"]
    if asked_for.get("encoding_format") == "base64":
        assert all(isinstance(vector, str) for vector in found["vectors"])
    else:
        assert found["vectors"] == [pytest.approx(one["embedding"], rel=1e-6) for one in plain]
    assert found["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize(
    ("endpoint", "body", "name", "status"),
    [
        ("chat", {"model": "gpt-4", "messages": [{"role": "user", "content": "hi"}]}, "NotFoundError", 404),
        ("embeddings", {"model": EMBEDDER, "input": [[1, 2, 3]]}, "BadRequestError", 400),
    ],
)
def test_it_has_its_own_class_of_error(vector_town: Town, endpoint: str, body: dict[str, Any], name: str, status: int) -> None:
    error = openai_node(vector_town, endpoint, body)["error"]
    assert (error["name"], error["status"]) == (name, status)
