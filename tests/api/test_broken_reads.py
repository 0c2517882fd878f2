"""A read that ends in an error may begin with output: what stands before the error is still the client's."""

import pytest

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS
from gateway.api.dialect import Dialect, Question
from gateway.api.message_events import MESSAGE_EVENTS
from gateway.api.response_events import EVENTS
from gateway.api.sse import StreamBroke
from gateway.errors import Refusal
from tests.api import test_chunk_repairs, test_message_events, test_response_events

FAILED = Refusal(502, "It failed.", kind="server_error", code="engine_failed")
ERROR = b'data: {"error":{"message":"CUDA","code":500}}\n\n'
CHAT = (test_chunk_repairs.BEGIN + test_chunk_repairs.TALK, test_chunk_repairs.TALK)
MESSAGE = (b"".join(test_message_events.STREAM[:3]), test_message_events.text("more"))
RESPONSE = (
    test_response_events.CREATED + test_response_events.ADDED + test_response_events.TEXTS[0],
    test_response_events.delta("more", 3),
)
STREAMS = [(CHUNKS, CHAT), (MESSAGE_EVENTS, MESSAGE), (EVENTS, RESPONSE)]


@pytest.mark.parametrize(("dialect", "stream"), STREAMS, ids=["chat", "messages", "responses"])
def test_what_came_before_an_error_in_the_same_read_is_not_lost(dialect: Dialect, stream: tuple[bytes, bytes]) -> None:
    """apisix#177: chunks that had come were thrown away."""
    begun, more = stream
    reader = dialect.reader(Question({}, False, ENGINE_KINDS["vllm"]))
    assert reader.feed(begun) == begun
    with pytest.raises(StreamBroke) as broke:
        reader.feed(more + ERROR + more)
    assert broke.value.before == more


def test_an_answer_that_began_and_broke_in_one_read_is_begun_where_it_is_told_that_it_failed() -> None:
    """Nothing of it had left: `response.failed` of a response that was never created is an error of another kind to the SDK."""
    reader = EVENTS.reader(Question({}, False, ENGINE_KINDS["vllm"]))
    with pytest.raises(StreamBroke):
        reader.feed(b"".join(RESPONSE) + ERROR)
    told = [event["type"] for event in test_response_events.events(EVENTS.broken(FAILED, reader))]
    assert told == ["response.created", "response.failed", "error"]
