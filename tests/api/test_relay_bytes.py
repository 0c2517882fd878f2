"""What real engines sent reaches the client byte for byte, less what docs/edits.md says: however it was cut on the way."""

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS, DONE, ChunkReader
from gateway.api.dialect import Question
from gateway.api.sse import FRAME_LIMIT_BYTES, Frames, StreamBroke, split
from tests.recordings.recording import cases, recorded

# Folders of recordings, and the kind of the engine that they are from.
KINDS = {"vllm": "vllm", "llamacpp": "llamacpp", "llamacpp-tools": "llamacpp"}
OF_CHUNKS = ("chat-", "completions-", "reasoning-chat", "begun-chat")
STREAMS = [
    (folder, case)
    for folder in KINDS
    for case in cases(folder)
    if case.startswith(OF_CHUNKS) and recorded(folder, case).answer.is_stream
]
BROKEN = [found for found in STREAMS if b'"error"' in recorded(*found).answer.body]
STREAMED = [found for found in STREAMS if found not in BROKEN]


def reader_for(folder: str, body: Mapping[str, Any] = MappingProxyType({}), *, wants_usage: bool = True) -> ChunkReader:
    return CHUNKS.reader(Question(body, wants_usage, ENGINE_KINDS[KINDS[folder]]))


def read(reader: ChunkReader, pieces: Iterable[bytes]) -> bytes:
    return b"".join([reader.feed(piece) for piece in pieces]) + reader.end()


def replayed(kind: str, case: str, *, wants_usage: bool = True) -> bytes:
    found = recorded(kind, case)
    return read(reader_for(kind, found.call.body, wants_usage=wants_usage), found.answer.pieces())


def parsed(frame: bytes) -> Any:
    return json.loads(frame.removeprefix(b"data: "))


def crumbs(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


@pytest.mark.parametrize(("kind", "case"), STREAMED)
def test_a_recorded_stream_passes_as_it_came_less_the_edits_of_the_table(kind: str, case: str) -> None:
    expected = list(by_the_table(split(recorded(kind, case).answer.body)))
    got = split(replayed(kind, case))
    assert len(got) == len(expected)
    for ours, (theirs, edited) in zip(got, expected, strict=True):
        assert ours == theirs if edited is None else parsed(ours) == edited


@pytest.mark.parametrize(("folder", "case"), BROKEN)
def test_a_recorded_stream_that_broke_is_no_answer(folder: str, case: str) -> None:
    """An engine killed in the middle, and output that its own parser could not read."""
    with pytest.raises(StreamBroke, match="an error instead of output"):
        replayed(folder, case)


def by_the_table(frames: list[bytes]) -> Iterator[tuple[bytes, Any]]:
    """Each frame that is to come, and what becomes of it (None: it comes as it was)."""
    seen, called = set[int](), set[tuple[int, int]]()
    owed: tuple[bytes, Any] | None = None
    shape = {name: value for name, value in parsed(frames[0]).items() if name != "choices"}
    for frame in frames:
        if frame == DONE:
            if owed is not None:
                yield owed
            yield frame, None
            continue
        chunk, before = parsed(frame), parsed(frame)
        if not chunk["choices"]:
            owed = frame, None
            continue
        for choice in chunk["choices"]:
            _edit(choice, seen, called)
        if "usage" in chunk:
            owed = b"", {**shape, "choices": [], "usage": chunk.pop("usage")}
        yield frame, None if chunk == before else chunk


def _edit(choice: Any, seen: set[int], called: set[tuple[int, int]]) -> None:
    index, delta = choice["index"], choice.get("delta", {})
    if index not in seen and delta.get("content", "") is None:
        delta["content"] = ""
    seen.add(index)
    if delta.get("reasoning") is not None:
        delta["reasoning_content"] = delta.pop("reasoning")
    for call in delta.get("tool_calls", ()):
        if (index, call["index"]) not in called:
            called.add((index, call["index"]))
            call["function"].setdefault("arguments", "")
    if choice["finish_reason"] == "stop" and any(owner == index for owner, _ in called):
        choice["finish_reason"] = "tool_calls"


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=25)
def test_however_a_recording_is_cut_the_same_bytes_come_out(kind: str, data: st.DataObject) -> None:
    found = recorded(kind, data.draw(st.sampled_from([case for folder, case in STREAMED if folder == kind])))
    body, asked = found.answer.body, found.call.body
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=40)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert read(reader_for(kind, asked), pieces) == read(reader_for(kind, asked), [body])


@pytest.mark.parametrize("case", ["chat-many-bytes-stream", "chat-tools-auto-two-stream", "reasoning-chat-stream"])
def test_byte_by_byte_and_with_other_line_ends(case: str) -> None:
    body = recorded("vllm", case).answer.body
    assert read(reader_for("vllm"), crumbs(body)) == replayed("vllm", case)
    with_returns = split(read(reader_for("vllm"), crumbs(body.replace(b"\n\n", b"\r\n\r\n"))))
    assert [parsed(frame) for frame in with_returns[:-1]] == [parsed(frame) for frame in split(replayed("vllm", case))[:-1]]
    assert with_returns[-1] == DONE


def test_the_recordings_have_characters_of_many_bytes() -> None:
    frames = split(replayed("vllm", "chat-many-bytes-stream", wants_usage=False))[:-1]
    assert "日本語 😀" in "".join(parsed(frame)["choices"][0]["delta"].get("content", "") for frame in frames)


def test_usage_that_was_not_asked_for_is_all_that_is_missing() -> None:
    for kind, case in STREAMED:
        without = split(replayed(kind, case, wants_usage=False))
        assert without == [frame for frame in split(replayed(kind, case)) if b'"choices":[]' not in frame], case


@pytest.mark.parametrize("kind", KINDS)
def test_whole_answers_pass_as_they_came_but_for_what_is_broken(kind: str) -> None:
    edited = {}
    for case in cases(kind):
        found = recorded(kind, case)
        if not case.startswith(OF_CHUNKS) or found.answer.status != 200 or found.answer.is_stream:
            continue
        told = CHUNKS.whole(found.answer.body, Question(found.call.body, False, ENGINE_KINDS[KINDS[kind]]))
        if told.body is not None:
            before, after = (json.loads(body)["choices"][0] for body in (found.answer.body, told.body))
            edited[case] = _differences(before, after) | _differences(before["message"], after["message"]) - {"message"}
    named, thought = {"finish_reason"}, {"message", "reasoning", "reasoning_content"}
    thoughtful = {case: thought for case in edited if case.startswith("reasoning-chat")}
    assert edited == ({"chat-tools-named": named, **thoughtful} if kind == "vllm" else {})
    assert bool(thoughtful) == (kind == "vllm")


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name, ...) != other.get(name, ...)}


def frame(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(chunk, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


BEGIN, STOP = frame({"role": "assistant", "content": ""}), frame({}, "stop")


@pytest.mark.parametrize("read_bytes", [1 << 10, 1 << 16, 1 << 24])
def test_an_event_of_ten_megabytes_passes(read_bytes: int) -> None:
    body = BEGIN + frame({"content": "a"}) + frame({"content": "é" * 5_000_000}) + STOP + DONE
    assert read(reader_for("vllm"), [body[at : at + read_bytes] for at in range(0, len(body), read_bytes)]) == body


def test_a_frame_over_the_limit_breaks_the_stream() -> None:
    frames = Frames()
    frames.feed(b"x" * FRAME_LIMIT_BYTES)
    with pytest.raises(StreamBroke, match="over"):
        frames.feed(b"x")


def test_many_frames_in_one_read_and_characters_cut_in_two() -> None:
    body = b"".join([BEGIN, *[frame({"content": letter}) for letter in "日本語🙂 data: {\n\n"], STOP, DONE])
    assert read(reader_for("vllm"), [body]) == body
    assert read(reader_for("vllm"), [body[at : at + 3] for at in range(0, len(body), 3)]) == body


LINES = [b"\n", b"\n\n", b"\r\n\r\n", b"data: {}\n\n", b"\r", b":x\n\n"]


@given(st.lists(st.binary(max_size=12) | st.sampled_from(LINES), max_size=30))
def test_the_splitter_loses_and_adds_no_byte(pieces: list[bytes]) -> None:
    frames, whole = Frames(), b""
    for piece in pieces:
        ended = frames.feed(piece)
        assert b"".join(split(ended)) == ended
        assert ended == b"" or ended.endswith((b"\n\n", b"\n\r\n"))
        whole += ended
    assert whole + frames.rest == b"".join(pieces)
    assert b"\n\n" not in frames.rest


ODD = [
    BEGIN,
    STOP,
    DONE,
    b"data: {}\n\n",
    b'data: {"usage":1,"choices":null}\n\n',
    b'data: {"choices":{"a":1}}\n\n',
    b'data: {"choices":[1]}\n\n',
    b'data: {"choices":[{"index":[]}]}\n\n',
    b'data: {"choices":[{"delta":1,"finish_reason":[1]}]}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[{"function":{}},{"index":[],"function":{"arguments":{}}}]}}]}\n\n',
]


@given(st.lists(st.binary(max_size=40) | st.sampled_from(ODD), max_size=12))
def test_no_stream_upsets_the_reader(pieces: list[bytes]) -> None:
    try:
        read(reader_for("vllm"), pieces)
    except StreamBroke:
        return


FIELDS = ["choices", "message", "delta", "tool_calls", "function", "arguments", "finish_reason", "usage", "role", "content"]
ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=15,
)


@given(ANSWERS)
def test_no_answer_upsets_the_reader(answer: Any) -> None:
    question = Question({}, False, ENGINE_KINDS["vllm"])
    for body in (answer, {"choices": answer}, {"choices": [answer]}):
        try:
            CHUNKS.whole(json.dumps(body).encode(), question)
        except StreamBroke:
            continue
