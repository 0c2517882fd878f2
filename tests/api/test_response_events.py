"""An engine's events are followed as bytes: any framing, nothing added but what a kind leaves out, cuts and errors noticed."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.dialect import Question
from gateway.api.response_events import EVENTS, EventReader
from gateway.api.sse import StreamBroke
from gateway.errors import Refusal
from gateway.progress import Usage
from tests.recordings.recording import Recording, cases, recorded
from tests.security.attacker import cpu_seconds

RECORDED = [
    recording
    for kind in ("vllm", "llamacpp", "llamacpp-tools")
    for case in cases(kind)
    if (recording := recorded(kind, case)).call.path == "/v1/responses" and recording.answer.status == 200
]
# An engine whose core died says nothing more; a model's output that llama.cpp can't read is an error of no name.
BROKEN = ("responses-broken-stream", "begun-responses-named-stream")
STREAMS = [recording for recording in RECORDED if recording.answer.is_stream and recording.case not in BROKEN]
OVERLOADED = Refusal(503, "All engines are busy.", kind="server_error", code="server_is_overloaded")


def question(kind: str = "vllm", **body: Any) -> Question:
    return Question(body, False, ENGINE_KINDS[kind], body.get("max_output_tokens"))


def frame(kind: str, **parts: Any) -> bytes:
    return f"event: {kind}\n".encode() + b"data: " + orjson.dumps({"type": kind, **parts}) + b"\n\n"


def delta(text: str, number: int) -> bytes:
    return frame("response.output_text.delta", item_id="msg_1", delta=text, sequence_number=number)


def answer(status: str, **parts: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": [], "status": status, **parts}


USAGE = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2, "total_tokens": 9}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "notes__read", "arguments": "{}"}
CREATED = frame("response.created", response=answer("in_progress"), sequence_number=0)
ADDED = frame("response.output_item.added", output_index=0, item={**MESSAGE, "content": []}, sequence_number=1)
TEXTS = [delta("Hel", 2), delta('lo "type":"response.completed" "error": [DONE] \n\ndata: {}', 3)]
ITEM_DONE = frame("response.output_item.done", output_index=0, item=MESSAGE, sequence_number=4)
COMPLETED = frame("response.completed", response=answer("completed", output=[MESSAGE], usage=USAGE), sequence_number=5)
STREAM = [CREATED, ADDED, *TEXTS, ITEM_DONE, COMPLETED]


def events(out: bytes) -> list[dict[str, Any]]:
    """Each event, once its two names agree."""
    found = []
    for one in filter(None, out.split(b"\n\n")):
        name, data = one.split(b"\n", 1)
        event = orjson.loads(data.removeprefix(b"data: "))
        assert name == f"event: {event['type']}".encode()
        found.append(event)
    return found


def read(stream: bytes, cuts: list[int], asked: Question | None = None) -> tuple[bytes, EventReader]:
    reader = EVENTS.reader(asked or question())
    out, start = b"", 0
    for end in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        out += reader.feed(stream[start:end])
        start = end
    return out + reader.end(), reader


def str_of(recording: Recording) -> str:
    return f"{recording.kind}-{recording.case}"


def engine_of(recording: Recording) -> str:
    return recording.kind.removesuffix("-tools")


def played(recording: Recording) -> tuple[bytes, EventReader]:
    reader = EVENTS.reader(question(engine_of(recording), **recording.call.body))
    out = b"".join([reader.feed(piece) for piece in recording.answer.pieces()])
    return out + reader.end(), reader


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_however_it_is_cut_the_client_gets_the_same_bytes(cuts: list[int]) -> None:
    out, reader = read(b"".join(STREAM), cuts)
    assert out == b"".join(STREAM)
    assert reader.usage == Usage(prompt_tokens=7, cached_tokens=3, completion_tokens=2)


def test_frames_may_end_with_carriage_returns() -> None:
    stream = b"".join(STREAM).replace(b"\n", b"\r\n")
    assert read(stream, [3, 60, 61, 200])[0] == stream


@pytest.mark.parametrize("recording", [one for one in STREAMS if one.kind == "vllm"], ids=str_of)
def test_what_vllm_sent_is_what_the_client_gets(recording: Recording) -> None:
    out, reader = played(recording)
    sent = recording.answer.body
    if b'"status":"incomplete"' in sent:  # its one breach: an answer that was cut is not completed
        sent = sent.replace(b"event: response.completed", b"event: response.incomplete")
        assert events(out)[:-1] == events(sent.rpartition(b"event:")[0])
        assert events(out)[-1]["type"] == "response.incomplete"
        assert events(out)[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    else:
        assert out == sent
    assert reader.has_output
    assert reader.usage is not None
    assert reader.usage.completion_tokens


@pytest.mark.parametrize("recording", [one for one in STREAMS if one.kind != "vllm"], ids=str_of)
def test_what_llamacpp_leaves_out_is_put_in(recording: Recording) -> None:
    told = events(played(recording)[0])
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert {"created_at", "model", "output", "tools"} <= told[0]["response"].keys()
    items = [item["id"] for item in told[-1]["response"]["output"]]
    for event in told:
        if event["type"].startswith(("response.output_", "response.function_call")):
            assert event["output_index"] == items.index(event.get("item_id") or event["item"]["id"])
        if event["type"] == "response.output_text.delta":
            assert (event["content_index"], event["logprobs"]) == (0, [])
    without = [
        {name: event[name] for name in original} | {"response": None, "part": None, "type": original["type"]}
        for event, original in zip(told, events(recording.answer.body), strict=True)
    ]
    assert without == [{**event, "response": None, "part": None} for event in events(recording.answer.body)]
    assert told[-1]["response"]["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}


@pytest.mark.parametrize(("case", "status"), [("responses-incomplete", "incomplete"), ("responses-ends", "completed")])
def test_an_answer_of_llamacpp_that_was_cut_is_no_completed_one(case: str, status: str) -> None:
    *_, last = events(played(recorded("llamacpp", f"{case}-stream"))[0])
    assert (last["type"], last["response"]["status"]) == (f"response.{status}", status)
    recording = recorded("llamacpp", case)
    told = EVENTS.whole(recording.answer.body, question("llamacpp", **recording.call.body))
    assert told.body is not None
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    assert orjson.loads(told.body)["incomplete_details"] == details


def test_a_call_of_llamacpp_gets_an_id_that_its_deltas_already_name() -> None:
    call = {"type": "function_call", "call_id": "fc_9", "name": "f", "arguments": "", "status": "in_progress"}
    stream = [
        frame("response.created", response={"id": "resp_1", "object": "response", "status": "in_progress"}),
        frame("response.output_item.added", item={**MESSAGE, "content": []}),
        frame("response.output_text.delta", item_id="msg_1", delta="Let me see."),
        frame("response.output_item.added", item=call),
        frame("response.function_call_arguments.delta", item_id="fc_9", delta="{}"),
        frame("response.output_item.done", item={**call, "arguments": "{}"}),
        frame("response.completed", response=answer("completed", output=[MESSAGE, call], usage=USAGE)),
    ]
    told = events(read(b"".join(stream), [], question("llamacpp", model="asked"))[0])
    assert [event.get("output_index") for event in told] == [None, 0, 0, 1, 1, 1, None]
    assert told[3]["item"]["id"] == told[5]["item"]["id"] == told[6]["response"]["output"][1]["id"] == "fc_9"
    assert told[0]["response"]["model"] == "asked"


def test_an_unwrapped_function_is_called_by_its_own_name_in_its_namespace() -> None:
    tools = [{"type": "namespace", "name": "notes", "tools": [{"type": "function", "name": "read"}]}]
    opened = frame("response.output_item.added", output_index=0, item=CALL, sequence_number=1)
    arguments = frame("response.function_call_arguments.delta", output_index=0, item_id="fc_1", delta="{}", sequence_number=2)
    done = frame("response.output_item.done", output_index=0, item=CALL, sequence_number=3)
    ended = frame("response.completed", response=answer("completed", output=[CALL], usage=USAGE), sequence_number=4)
    stream = CREATED + opened + arguments + done + ended
    told = events(read(stream, [], question("sglang", tools=tools))[0])
    calls = [told[1]["item"], told[3]["item"], told[4]["response"]["output"][0]]
    assert [(call["namespace"], call["name"]) for call in calls] == [("notes", "read")] * 3
    assert read(stream, [], question("vllm", tools=tools))[0] == stream  # vLLM has done it itself
    whole = EVENTS.whole(orjson.dumps(answer("completed", output=[CALL], usage=USAGE)), question("sglang", tools=tools))
    assert whole.body is not None
    assert orjson.loads(whole.body)["output"][0]["namespace"] == "notes"


@pytest.mark.parametrize(
    "first_output",
    [
        delta("H", 1),
        frame("response.reasoning_text.delta", delta="Hm"),
        frame("response.function_call_arguments.delta", delta="{"),
        frame("response.refusal.delta", delta="No"),
        frame("response.output_item.done", item=CALL),
        ITEM_DONE,
        COMPLETED,
    ],
)
def test_output_begins_with_the_first_piece_of_it(first_output: bytes) -> None:
    reader = EVENTS.reader(question())
    for opening in (CREATED, ADDED, delta("", 1), frame("response.output_item.done", item={**MESSAGE, "content": []})):
        reader.feed(opening)
        assert not reader.has_output
    reader.feed(first_output)
    assert reader.has_output


def test_comments_and_a_done_of_an_engine_are_taken_out_before_output() -> None:
    stream = b": ping\n\n" + CREATED + b"data: [DONE]\n\n" + b"".join(STREAM[1:]) + b"data: [DONE]\n\n"
    assert read(stream, [])[0] == b"".join(STREAM)


@pytest.mark.parametrize(
    "last",
    [
        b"",
        COMPLETED[:-1],
        frame("response.failed", response=answer("failed", error={"code": "x", "message": "a prompt"})),
        frame("error", code="x", message="a prompt"),
        b'data: {"error":{"message":"a prompt","code":500}}\n\n',
        frame("response.completed", response=answer("cancelled")),
        frame("response.completed"),
        b"data: {\n\n",
        b"data: []\n\n",
    ],
)
@pytest.mark.parametrize("begun", [True, False])
def test_an_answer_that_does_not_end_well_is_broken(last: bytes, begun: bool) -> None:
    if last in (b"data: {\n\n", b"data: []\n\n") and begun:
        last += COMPLETED  # looked at together with what is notable
    stream = CREATED + (b"".join(TEXTS) if begun else b"") + last
    with pytest.raises(StreamBroke) as broke:
        read(stream, [len(CREATED + TEXTS[0])])
    assert "a prompt" not in str(broke.value)


@pytest.mark.parametrize(
    "last",
    [
        frame("response.failed", response=answer("failed")),
        frame("error", code="x", message="a prompt"),
        b'data: {"error":{"message":"a prompt","code":500}}\n\n',
    ],
)
def test_no_error_of_an_engine_reaches_the_client_in_its_words(last: bytes) -> None:
    reader = EVENTS.reader(question())
    reader.feed(CREATED + TEXTS[0])
    with pytest.raises(StreamBroke):
        reader.feed(last)


@pytest.mark.parametrize("status", ["completed", "incomplete"])
@pytest.mark.parametrize("output", [[MESSAGE], None])
def test_an_end_that_comes_by_itself_is_one_and_nothing_follows_it(status: str, output: Any) -> None:
    reader = EVENTS.reader(question())
    reader.feed(CREATED + TEXTS[0])
    end = frame(f"response.{status}", response=answer(status, output=output, usage=USAGE), sequence_number=5)
    assert reader.feed(end) == end
    assert reader.feed(delta("more", 6)) == b""
    assert reader.end() == b""
    assert reader.usage == Usage(7, 3, 2)


def test_each_delta_stands_for_a_token_where_no_count_came() -> None:
    reader = EVENTS.reader(question())
    for piece in (CREATED + ADDED, delta("a", 2), delta("b", 3) + delta("c", 4)):
        reader.feed(piece)
    assert (reader.frames, reader.usage) == (3, None)


@pytest.mark.parametrize("recording", [one for one in RECORDED if one.case in BROKEN], ids=str_of)
def test_a_recorded_stream_that_broke_is_broken(recording: Recording) -> None:
    with pytest.raises(StreamBroke):
        played(recording)


def test_an_engine_may_not_send_a_frame_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.api.sse.FRAME_LIMIT_BYTES", 1000)
    with pytest.raises(StreamBroke):
        EVENTS.reader(question()).feed(b"data: " + b"x" * 1001)


def test_a_failure_in_the_middle_is_told_in_both_ways_that_clients_listen_to() -> None:
    reader = EVENTS.reader(question())
    reader.feed(CREATED + ADDED + TEXTS[0])
    failed, error = events(EVENTS.broken(OVERLOADED, reader))
    assert failed["type"] == "response.failed"
    assert failed["response"]["id"] == "resp_1"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_is_overloaded", "message": "All engines are busy."}
    assert error["error"] == {
        "message": "All engines are busy.", "type": "server_error", "param": None, "code": "server_is_overloaded",
    }  # fmt: skip
    assert (error["code"], error["message"], error["param"]) == ("server_is_overloaded", "All engines are busy.", None)
    assert [failed["sequence_number"], error["sequence_number"]] == [3, 4]


@pytest.mark.parametrize("held", [b"", CREATED])
def test_a_failure_before_anything_was_delivered_begins_an_answer_of_its_own(held: bytes) -> None:
    reader = EVENTS.reader(question()) if held else None
    if reader is not None:
        reader.feed(held)
    created, failed, error = events(EVENTS.broken(OVERLOADED, reader))
    assert [created["type"], failed["type"], error["type"]] == ["response.created", "response.failed", "error"]
    assert created["response"]["id"] == failed["response"]["id"]
    assert created["response"]["id"].startswith("resp_")


def test_silence_is_a_comment_before_output_and_a_repeated_event_after_it() -> None:
    reader = EVENTS.reader(question())
    assert reader.silence() == b": waiting\n\n"
    reader.feed(CREATED)
    assert reader.silence() == b": waiting\n\n"  # response.created is still held back
    reader.feed(TEXTS[0])
    (event,) = events(reader.silence())
    assert event == {"type": "response.in_progress", "sequence_number": 2, "response": answer("in_progress")}
    assert events(reader.silence()) == [event]


def test_an_answer_that_ran_out_of_time_ends_as_incomplete_with_what_was_finished() -> None:
    reader = EVENTS.reader(question())
    for piece in (CREATED + ADDED + TEXTS[0], ITEM_DONE, delta("more", 5)):
        reader.feed(piece)
    (event,) = events(reader.last_words())
    assert event["type"] == "response.incomplete"
    assert event["sequence_number"] == 6
    assert event["response"]["status"] == "incomplete"
    assert event["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert event["response"]["output"] == [MESSAGE]


@pytest.mark.parametrize(
    ("output", "is_empty"),
    [
        ([], True),
        ([{**MESSAGE, "content": []}], True),
        ([{**MESSAGE, "content": [{"type": "output_text", "text": ""}]}], True),
        ([MESSAGE], False),
        ([CALL], False),
        ([{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]}], False),
        ([{**MESSAGE, "content": [{"type": "refusal", "refusal": "No"}]}], False),
    ],
)
def test_a_whole_answer_is_empty_without_an_item_that_says_something(output: list[Any], is_empty: bool) -> None:
    told = EVENTS.whole(orjson.dumps(answer("completed", output=output, usage=USAGE)), question())
    assert told == (Usage(7, 3, 2), is_empty, None)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", orjson.dumps({"error": {"message": "x"}}), orjson.dumps(answer("failed")), b'{"status":"completed"}'],
)
def test_a_whole_body_that_is_no_answer_is_broken(body: bytes) -> None:
    with pytest.raises(StreamBroke):
        EVENTS.whole(body, question())


@pytest.mark.parametrize("recording", [one for one in RECORDED if not one.answer.is_stream], ids=str_of)
def test_recorded_whole_answers(recording: Recording) -> None:
    told = EVENTS.whole(recording.answer.body, question(engine_of(recording), **recording.call.body))
    assert not told.is_empty
    assert told.usage.completion_tokens
    assert (told.body is None) == (recording.kind == "vllm")


def test_a_large_event_in_many_small_reads_costs_what_it_weighs() -> None:
    """Engines say a request's instructions and tools back, three times; searched anew with each read, 8 MB took two seconds."""
    whole = frame("response.created", response={"id": "r", "instructions": "x" * 8_000_000})
    pieces = [whole[at : at + 16_384] for at in range(0, len(whole), 16_384)]
    reader = EventReader()
    assert cpu_seconds(lambda: [reader.feed(piece) for piece in pieces]) < 1.0
