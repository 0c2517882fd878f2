"""An engine's message stream is followed as bytes: any framing, every event named, blocks in order, cuts and errors noticed."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.dialect import Question
from gateway.api.message_events import MESSAGE_EVENTS, PING, TOKEN_COUNTS, MessageReader
from gateway.api.sse import StreamBroke
from gateway.errors import Refusal
from gateway.progress import Progress, Usage
from tests.recordings.recording import Recording, cases, recorded
from tests.support.engine_messages import event
from tests.support.message_blocks import events, faults

KIND_OF = {"vllm": "vllm", "llamacpp": "llamacpp", "llamacpp-tools": "llamacpp"}
STREAMS = [
    recorded(folder, case)
    for folder in KIND_OF
    for case in cases(folder)
    if "messages" in case.removeprefix("begun-").removeprefix("reasoning-")[:8] and case.endswith("-stream")
]
WHOLE_STREAMS = [stream for stream in STREAMS if stream.answer.is_stream and b"event: error" not in stream.answer.body]
VLLM_STREAMS = [stream for stream in WHOLE_STREAMS if stream.kind == "vllm"]
BROKEN = recorded("vllm", "messages-broken-stream")

START = event(
    "message_start",
    message={"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}},
)
BLOCK = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
STOP = event("content_block_stop", index=0)
END = event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2})
LAST = event("message_stop")


def text(words: str, index: int = 0) -> bytes:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": words})


STREAM = [START, BLOCK, text("Hel"), text("lo\n\nevent: error\ndata: [DONE]"), STOP, END, LAST]


def question(kind: str = "vllm") -> Question:
    return Question({}, wants_usage=False, engine=ENGINE_KINDS[kind])


def read(stream: bytes, cuts: list[int], kind: str = "vllm") -> tuple[bytes, MessageReader]:
    reader = MESSAGE_EVENTS.reader(question(kind))
    out, start = b"", 0
    for end in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        out += reader.feed(stream[start:end])
        start = end
    return out + reader.end(), reader


def named(found: list[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stream", found, ids=[f"{each.kind}-{each.case}" for each in found])


@named(VLLM_STREAMS)
def test_a_recorded_stream_passes_byte_for_byte_however_it_is_cut(stream: Recording) -> None:
    body = stream.answer.body
    ends = [sum(stream.answer.reads[: count + 1]) for count in range(len(stream.answer.reads))]
    assert read(body, ends)[0] == read(body, list(range(len(body))))[0] == read(body, [])[0] == body


@named(WHOLE_STREAMS)
def test_what_a_client_gets_of_a_recorded_stream_keeps_the_order_of_blocks(stream: Recording) -> None:
    out, reader = read(stream.answer.body, [], KIND_OF[stream.kind])
    assert faults(out) == []
    assert reader.is_done
    assert _deltas(out) == _deltas(stream.answer.body)


def _deltas(stream: bytes) -> list[Any]:
    return [(data["index"], data["delta"]) for name, data in events(stream) if name == "content_block_delta"]


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_however_it_is_cut_the_client_gets_the_same_bytes(cuts: list[int]) -> None:
    out, reader = read(b"".join(STREAM), cuts)
    assert out == b"".join(STREAM)
    assert reader.usage == Usage(9, None, 2)
    assert reader.frames == 2


def test_a_frame_without_its_event_line_gets_one() -> None:
    """SDKs drop it without a word."""
    bare = b"".join(b"data:" + frame.split(b"data:", 1)[1] for frame in STREAM)
    out = read(bare, [])[0]
    assert events(out) == events(b"".join(STREAM))
    assert faults(out) == []


def test_crlf_comments_and_done_of_other_dialects() -> None:
    crlf = [frame.replace(b"\n", b"\r\n") for frame in (START, text("b"))]
    stream = [b": hello\r\n\r\n", crlf[0], BLOCK, text("a"), b": ping\n\n", crlf[1], STOP, END, LAST, b"data: [DONE]\n\n"]
    assert read(b"".join(stream), [])[0] == b"".join([crlf[0], BLOCK, text("a"), crlf[1], STOP, END, LAST])


@pytest.mark.parametrize("count", range(len(STREAM)))
def test_a_stream_without_message_stop_is_broken(count: int) -> None:
    with pytest.raises(StreamBroke, match="without message_stop"):
        read(b"".join(STREAM[:count]), [])


def test_a_stream_of_an_engine_that_died_is_broken_and_its_words_are_not_kept() -> None:
    with pytest.raises(StreamBroke) as broke:
        read(BROKEN.answer.body, [])
    assert str(broke.value) == "the engine sent an error instead of output"


@pytest.mark.parametrize(
    "frame",
    [
        b'event: error\ndata: {"type":"error","error":{"type":"x","message":"boom"}}\n\n',
        b'data: {"error":{"code":500,"message":"peg"}}\n\n',
        b"event: message_delta\ndata: {nonsense\n\n",
        b"event: message_delta\ndata: []\n\n",
    ],
)
@pytest.mark.parametrize("before", [b"", START + BLOCK + text("x")])
def test_an_error_of_any_shape_breaks_the_stream(before: bytes, frame: bytes) -> None:
    with pytest.raises(StreamBroke):
        read(before + frame, [])


@pytest.mark.parametrize(
    "first",
    [
        BLOCK + text("x"),
        event("content_block_start", index=0, content_block={"type": "text", "text": "x"}),
        event("content_block_start", index=0, content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "x"}),
        event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{"}),
    ],
)
def test_output_is_the_first_text_thought_or_call(first: bytes) -> None:
    reader = MESSAGE_EVENTS.reader(question())
    reader.feed(START + BLOCK + text("") + PING)
    assert not reader.has_output
    reader.feed(first)
    assert reader.has_output


def test_tokens_that_came_from_a_cache_are_prompt_tokens_too() -> None:
    """vLLM knows of its cache only at the end, llama.cpp only at the beginning."""
    assert read(recorded("vllm", "messages-tools-any-stream").answer.body, [])[1].usage == Usage(222, 128, 36)
    assert read(recorded("llamacpp", "messages-plain-stream").answer.body, [])[1].usage == Usage(33, 24, 16)


def test_what_a_cut_stream_wrote_is_estimated_and_what_it_read_is_known() -> None:
    reader = MESSAGE_EVENTS.reader(question())
    reader.feed(b"".join(STREAM[:4]))
    progress = Progress()
    progress.count(reader.usage, reader.frames)
    assert (progress.prompt_tokens, progress.completion_tokens, progress.tokens_estimated) == (9, 2, True)


@pytest.mark.parametrize(
    ("got", "owed"),
    [
        ([START, BLOCK, text("x")], ["content_block_stop", "message_delta", "message_stop"]),
        ([START, BLOCK, text("x"), STOP], ["message_delta", "message_stop"]),
        ([START, BLOCK, text("x"), STOP, END], ["message_stop"]),
    ],
)
def test_our_own_time_out_ends_the_message_as_max_tokens(got: list[bytes], owed: list[str]) -> None:
    reader = MESSAGE_EVENTS.reader(question())
    out = b"".join(reader.feed(frame) for frame in got) + reader.last_words()
    assert faults(out) == []
    assert [name for name, _ in events(out)][-len(owed) :] == owed
    if owed[0] != "message_stop":
        [ending] = [data for name, data in events(out) if name == "message_delta"]
        assert ending["delta"]["stop_reason"] == "max_tokens"
        assert ending["usage"] == {"output_tokens": 1}


def test_silence_is_anthropics_own_ping_and_an_error_an_event_of_theirs() -> None:
    assert MESSAGE_EVENTS.silence == MESSAGE_EVENTS.reader(question()).silence() == PING
    broken = MESSAGE_EVENTS.broken(Refusal(502, "It failed.", kind="server_error", code="engine_failed"), None)
    [(name, data)] = events(broken)
    error = {"type": "api_error", "message": "It failed.", "details": {"error_code": "engine_failed"}}
    assert (name, data) == ("error", {"type": "error", "error": error})


@pytest.mark.parametrize(
    ("status", "code", "told", "kind"),
    [
        (400, "invalid_value", 400, "invalid_request_error"),
        (401, "invalid_api_key", 401, "authentication_error"),
        (403, "model_not_in_plan", 403, "permission_error"),
        (404, "model_not_found", 404, "not_found_error"),
        (405, "method_not_allowed", 405, "invalid_request_error"),
        (413, "request_too_large", 413, "request_too_large"),
        (415, None, 415, "invalid_request_error"),
        (429, "insufficient_quota", 429, "rate_limit_error"),
        (500, "internal_error", 500, "api_error"),
        (502, "engine_failed", 502, "api_error"),
        (503, "service_unavailable", 503, "api_error"),
        (503, "server_is_overloaded", 529, "overloaded_error"),
        (504, "engine_timeout", 504, "timeout_error"),
    ],
)
def test_an_error_has_anthropics_type_and_names_the_request(status: int, code: str | None, told: int, kind: str) -> None:
    got, headers, body = MESSAGE_EVENTS.refused(Refusal(status, "Why.", code=code, retry_after_seconds=2), b"r1")
    error = {"type": kind, "message": "Why."} | ({"details": {"error_code": code}} if code else {})
    assert orjson.loads(body) == {"type": "error", "error": error, "request_id": "r1"}
    assert (got, dict(headers)[b"retry-after"]) == (told, b"2")


@pytest.mark.parametrize("folder", ["vllm", "llamacpp"])
def test_a_recorded_answer_passes_as_it_came(folder: str) -> None:
    told = MESSAGE_EVENTS.whole(recorded(folder, "messages-ends").answer.body, question(folder))
    assert told == (Usage(40, 0 if folder == "vllm" else 24, 3), False, None)


def test_an_answer_that_is_a_call_alone_is_not_empty_and_one_without_words_is() -> None:
    call = b'{"content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}}'
    assert not MESSAGE_EVENTS.whole(call, question()).is_empty
    assert MESSAGE_EVENTS.whole(b'{"content":[{"type":"text","text":""}]}', question()).is_empty
    assert MESSAGE_EVENTS.whole(b'{"content":[]}', question()).is_empty


@pytest.mark.parametrize("body", [b'{"error":{"message":"x"}}', b"[]", b"<html>", b'{"content":"x"}'])
def test_what_is_no_answer_is_broken(body: bytes) -> None:
    with pytest.raises(StreamBroke):
        MESSAGE_EVENTS.whole(body, question())
    with pytest.raises(StreamBroke):
        TOKEN_COUNTS.whole(body, question())


def test_llamacpp_names_a_stop_sequence_as_anthropic_does() -> None:
    recording = recorded("llamacpp", "messages-stop")
    assert recording.answer.json()["stop_reason"] == "end_turn"
    told = MESSAGE_EVENTS.whole(recording.answer.body, question("llamacpp"))
    assert told.body is not None
    assert orjson.loads(told.body) == {**recording.answer.json(), "stop_reason": "stop_sequence"}


def test_a_count_of_tokens_is_no_token_of_a_model() -> None:
    told = TOKEN_COUNTS.whole(recorded("vllm", "messages-count").answer.body, question())
    assert told == (Usage(), False, None)
