"""A client that leaves a real vLLM, through the gateway: the engine stops working for it."""

import socket
import time

import pytest

from tests.engine.counted import gauge, only_event_of
from tests.engine.vllm import Vllm
from tests.recordings.calls_chat import chat
from tests.recordings.calls_messages import message
from tests.recordings.calls_responses import respond
from tests.recordings.recording import Call
from tests.recordings.words import says
from tests.support.gateway import Customer, Town, wait_for

pytestmark = pytest.mark.engine

STORY = [says("Write a list of all the towns in France, one a line.")]
# Minutes of work, were they not stopped.
LONG = {
    "chat": chat(STORY, max_tokens=3000, ignore_eos=True, stream=True),
    "chat in one piece": chat(STORY, max_tokens=3000, ignore_eos=True),
    "responses": respond(STORY, max_output_tokens=3000, ignore_eos=True, stream=True),
    "messages": message(STORY, max_tokens=3000, stream=True),
}


@pytest.mark.parametrize("surface", LONG)
def test_the_engine_is_free_within_a_second(faregate: Town, vllm: Vllm, surface: str) -> None:
    customer = faregate.key()
    client = begin(faregate, customer, LONG[surface])
    wait_for(lambda: gauge(vllm.url, "vllm:num_requests_running") == 1, 20)
    if LONG[surface].streams:
        assert client.recv(10)
    client.close()
    left = time.monotonic()
    wait_for(lambda: gauge(vllm.url, "vllm:num_requests_running") == 0, 20)
    assert time.monotonic() - left < 1
    event = only_event_of(faregate, customer)
    assert event.reason == ("left_after_output" if LONG[surface].streams else "left_before_output")


def begin(town: Town, customer: Customer, call: Call) -> socket.socket:
    body = call.encoded()
    client = socket.create_connection(("127.0.0.1", town.gateway().port), timeout=30)
    head = f"POST {call.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {customer.token}\r\n"
    client.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    return client
