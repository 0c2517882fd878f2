"""Client gone, GPU free: on each paid path, also where nothing is streamed and the engine says nothing for long."""

import json
import socket
import time
from typing import Any

import pytest

from gateway.api.endpoints import ENDPOINTS
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, wait_for
from tests.support.hang_up import hang_up, nothing_is_taken
from tests.support.stream import settled
from tests.vectors.conftest import CHAT, EMBEDDER, RERANKER

HANG = '@engine {"hang": true}'
MESSAGES = [{"role": "user", "content": HANG}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": CHAT, "messages": MESSAGES},
    "/v1/completions": {"model": CHAT, "prompt": HANG},
    "/v1/responses": {"model": CHAT, "input": HANG},
    "/v1/messages": {"model": CHAT, "messages": MESSAGES, "max_tokens": 9},
    "/v1/messages/count_tokens": {"model": CHAT, "messages": MESSAGES},
    "/v1/embeddings": {"model": EMBEDDER, "input": HANG},
    "/v1/rerank": {"model": RERANKER, "query": HANG, "documents": ["a"]},
    "/v1/score": {"model": RERANKER, "text_1": HANG, "text_2": "a"},
}
PROMISED_NS = 200_000_000


def test_every_paid_path_is_tried() -> None:
    assert BODIES.keys() == {endpoint.path for endpoint in ENDPOINTS}


@pytest.mark.parametrize("path", BODIES)
def test_a_hang_up_frees_the_engine_whatever_was_asked(served: Town, standing_engine: StandInEngine, path: str) -> None:
    """litellm#37140, #36123, production-stack#634: without a stream, and on the newer paths, engines worked on for nobody."""
    gateway, customer, body = served.gateway(), served.key(), json.dumps(BODIES[path])
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {customer.token}\r\ncontent-length: {len(body)}\r\n\r\n"
    client = socket.create_connection(("127.0.0.1", gateway.port), timeout=10)
    client.sendall((head + body).encode())
    standing_engine.wait_for(lambda journal: journal["running"] == 1)
    time.sleep(0.05)
    at = hang_up(client)
    [request] = standing_engine.wait_for(lambda journal: journal["running"] == 0)["requests"]
    assert 0 <= request["aborted_ns"] - at < PROMISED_NS
    wait_for(lambda: nothing_is_taken(served))
    assert [(event.verdict, event.reason) for event in settled(served.redis_url, customer)] == [("voided", "left_before_output")]
