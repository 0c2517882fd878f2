"""An engine's stream is followed as bytes: any framing, nothing added, usage taken out unless asked for, cuts noticed."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.chunks import ChunkReader
from gateway.api.sse import StreamBroke
from gateway.progress import Usage


def frame(**chunk: Any) -> bytes:
    return b"data: " + orjson.dumps({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}) + b"\n\n"


def delta(finish: str | None = None, index: int = 0, **parts: Any) -> bytes:
    return frame(choices=[{"index": index, "delta": parts, "finish_reason": finish}])


ROLE = delta(role="assistant", content="")
USAGE = frame(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 2})
DONE = b"data: [DONE]\n\n"
TEXTS = [delta(content="Hel"), delta(content='lo "finish_reason":"stop" "usage":{ "error": [DONE]')]
STREAM = [ROLE, *TEXTS, delta("stop"), USAGE, DONE]


def read(stream: bytes, cuts: list[int], *, wants_usage: bool = False) -> tuple[bytes, ChunkReader]:
    reader = ChunkReader(wants_usage)
    out, start = b"", 0
    for end in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        out += reader.feed(stream[start:end])
        start = end
    return out + reader.end(), reader


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_however_it_is_cut_the_client_gets_the_same_bytes(cuts: list[int]) -> None:
    out, reader = read(b"".join(STREAM), cuts)
    assert out == b"".join([ROLE, *TEXTS, delta("stop"), DONE])
    assert reader.usage == Usage(7, None, 2)
    assert reader.finish_reason == "stop"
    assert reader.frames == 4


def test_byte_by_byte() -> None:
    stream = b"".join(STREAM)
    assert read(stream, list(range(len(stream))))[0] == b"".join([ROLE, *TEXTS, delta("stop"), DONE])


def test_usage_that_was_asked_for_stays() -> None:
    assert read(b"".join(STREAM), [], wants_usage=True)[0] == b"".join(STREAM)


def test_usage_on_the_last_content_chunk_is_taken_out_of_it() -> None:
    last = frame(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}], usage={"prompt_tokens": 1})
    out, reader = read(ROLE + TEXTS[0] + last + DONE, [])
    assert b"usage" not in out
    assert b'"finish_reason":"stop"' in out
    assert reader.usage == Usage(1, None, None)


def test_crlf_comments_and_named_fields() -> None:
    stream = b": ping\r\n\r\n" + ROLE.replace(b"\n", b"\r\n") + b"id: 1\n" + TEXTS[0] + delta("stop") + b"data:[DONE]\n\n"
    out, reader = read(stream, [])
    assert reader.is_done
    assert b"ping" not in out


@pytest.mark.parametrize(
    "stream",
    [
        ROLE + TEXTS[0],
        ROLE + TEXTS[0] + DONE,
        ROLE + DONE,
        b"",
        b'data: {"trunca',
        ROLE + delta("stop", 0) + delta(None, 1, content="x") + DONE,
    ],
)
def test_a_stream_that_ends_unfinished_is_broken(stream: bytes) -> None:
    with pytest.raises(StreamBroke, match="without finishing"):
        read(stream, [])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (b'data: {"error": {"message": "CUDA out of memory", "code": 500}}\n\n', "sent an error"),
        (b'data: {"object":"error","message":"boom","type":"x"}\n\n', "sent an error"),
        (b'data: {"error":"plain"}\n\n', "sent an error"),
        (b"data: {nonsense\n\n", "not JSON"),
        (b"data: []\n\n", "not an object"),
    ],
)
@pytest.mark.parametrize("before", [b"", ROLE + TEXTS[0]])
def test_an_error_frame_of_any_shape_is_raised(before: bytes, error: bytes, words: str) -> None:
    with pytest.raises(StreamBroke, match=words):
        read(before + error, [])


def test_a_missing_done_is_supplied_after_a_finish() -> None:
    assert read(ROLE + TEXTS[0] + delta("stop"), [])[0].endswith(DONE)


def test_nothing_after_done() -> None:
    assert read(b"".join(STREAM) + TEXTS[0], [])[0].endswith(DONE)


@pytest.mark.parametrize("part", [{"content": "x"}, {"reasoning_content": "x"}, {"tool_calls": [{"index": 0}]}])
def test_output_is_the_first_delta_that_says_something(part: dict[str, Any]) -> None:
    reader = ChunkReader(wants_usage=False)
    reader.feed(ROLE)
    assert not reader.has_output
    reader.feed(delta(**part))
    assert reader.has_output


def test_every_choice_must_finish() -> None:
    stream = b"".join([ROLE, delta(None, 1, content="b"), delta("stop", 0), delta("length", 1), DONE])
    assert read(stream, [])[1].is_finished


def test_our_own_time_out_ends_the_open_choices_as_length() -> None:
    reader = ChunkReader(wants_usage=False)
    reader.feed(ROLE + TEXTS[0] + delta(None, 1, content="y") + delta("stop", 1))
    last = orjson.loads(reader.last_words().removesuffix(DONE).removeprefix(b"data: "))
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
    assert last["id"] == "x"


def test_a_frame_without_end_does_not_fill_the_memory() -> None:
    reader = ChunkReader(wants_usage=False)
    reader.feed(b"data: " + b"x" * 12 * 1024 * 1024)
    with pytest.raises(StreamBroke, match="over"):
        reader.feed(b"x" * 5 * 1024 * 1024)
