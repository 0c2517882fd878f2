"""Whatever an engine breaks of the shapes that clients of chat count on is mended, once, and nothing else is touched."""

from typing import Any

import orjson
import pytest

from backends.engines.kinds import ENGINE_KINDS
from gateway.api.chunks import CHUNKS, DONE, ChunkReader
from gateway.api.dialect import Question
from gateway.api.sse import StreamBroke, split

QUESTION = Question({}, False, ENGINE_KINDS["vllm"])


def frame(*choices: Any, **more: Any) -> bytes:
    return b"data: " + orjson.dumps({"id": "x", "object": "chat.completion.chunk", "choices": choices, **more}) + b"\n\n"


def delta(finish: str | None = None, index: int = 0, **parts: Any) -> bytes:
    return frame({"index": index, "delta": parts, "finish_reason": finish})


def call(index: int = 0, **function: Any) -> dict[str, Any]:
    named = {"id": f"call_{index}", "type": "function"} if "name" in function else {}
    return {"index": index, **named, "function": function}


BEGIN = delta(role="assistant", content="")
TALK = delta(content="a")


def read(*frames: bytes, wants_usage: bool = False, choices: int = 1) -> bytes:
    """Frame by frame, so that each is decided by itself."""
    reader = ChunkReader(wants_usage, "reasoning", choices)
    return b"".join([reader.feed(one) for one in frames]) + reader.end()


def chunks(stream: bytes) -> list[Any]:
    return [orjson.loads(one.removeprefix(b"data: ")) for one in split(stream) if one != DONE]


def whole(finish: str | None = "stop", **message: Any) -> Any:
    body = orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    told = CHUNKS.whole(body, QUESTION)
    return None if told.body is None else orjson.loads(told.body)["choices"][0]


CALLED = {"role": "assistant", "content": None, "tool_calls": [call(name="f", arguments='{"a":1}')]}


@pytest.mark.parametrize(
    ("reason", "standard"),
    [("eos_token", "stop"), ("stop_sequence", "stop"), ("end_turn", "stop"), ("max_tokens", "length"), ("bogus_reason", "stop"),
     ("function_call", "stop"), ("tool_calls", "stop")],
)  # fmt: skip
def test_a_finish_reason_that_clients_do_not_know_becomes_one_that_they_do(reason: str, standard: str) -> None:
    """opencode#49414, #45315: 2,517 requests over a `bogus_reason`; vllm#53255: `tool_calls` without any call."""
    assert chunks(read(BEGIN, TALK, delta(reason)))[-1]["choices"][0]["finish_reason"] == standard
    assert whole(reason, role="assistant", content="a")["finish_reason"] == standard


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_a_finish_reason_that_clients_know_passes_as_it_came(reason: str) -> None:
    assert read(BEGIN, TALK, delta(reason)) == BEGIN + TALK + delta(reason) + DONE
    assert whole(reason, role="assistant", content="a") is None


@pytest.mark.parametrize("reason", ["abort", "error", "cancelled"])
def test_an_engine_that_gave_up_has_not_answered(reason: str) -> None:
    """pydantic-ai#2844: `finish_reason: "error"` was taken for an answer."""
    with pytest.raises(StreamBroke, match="gave up"):
        read(BEGIN, TALK, delta(reason))
    with pytest.raises(StreamBroke, match="gave up"):
        whole(reason, role="assistant", content="a")


def test_who_called_a_tool_has_finished_by_that() -> None:
    """vllm#9209, #25054: `stop` where the tool was named by the client."""
    stream = [BEGIN, delta(tool_calls=[call(name="f", arguments="")]), delta(tool_calls=[call(arguments="{}")]), delta("stop")]
    assert read(*stream) == b"".join([*stream[:-1], delta("tool_calls"), DONE])
    assert whole("stop", **CALLED)["finish_reason"] == "tool_calls"
    assert whole("tool_calls", **CALLED) is None


def test_an_answer_that_was_cut_inside_a_call_stays_cut() -> None:
    stream = [BEGIN, delta(tool_calls=[call(name="f", arguments="")]), delta("length")]
    assert read(*stream) == b"".join([*stream, DONE])


def test_each_choice_finishes_for_itself() -> None:
    stream = [
        BEGIN, delta(index=1, role="assistant", content=""), TALK, delta(index=1, tool_calls=[call(name="f", arguments="{}")]),
        delta("stop"), delta("stop", index=1),
    ]  # fmt: skip
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks(read(*stream, choices=2))[-2:]] == ["stop", "tool_calls"]


def test_a_choice_that_began_late_and_never_finished_is_a_broken_answer() -> None:
    begun = [BEGIN, TALK, delta(index=1, role="assistant", content=""), delta(index=1, content="b"), delta("stop")]
    with pytest.raises(StreamBroke, match="without finishing"):
        read(*begun, choices=2)


def test_a_calls_first_delta_has_arguments_and_the_rest_passes() -> None:
    pieces = [delta(tool_calls=[call(arguments=part)]) for part in ('{"a"', ":1}")]
    got = split(read(BEGIN, delta(tool_calls=[call(name="f")]), *pieces, delta("tool_calls")))
    assert orjson.loads(got[1][6:])["choices"][0]["delta"]["tool_calls"][0] == call(name="f", arguments="")
    assert [got[0], *got[2:4]] == [BEGIN, *pieces]


def test_a_call_without_arguments_ends_with_an_empty_object() -> None:
    """The Agents SDK fails such a call on an empty string."""
    two = delta(tool_calls=[call(0, name="f"), call(1, name="g", arguments="{}")])
    last = chunks(read(BEGIN, two, delta("tool_calls")))[-1]["choices"][0]
    assert last == {"index": 0, "delta": {"tool_calls": [call(arguments="{}")]}, "finish_reason": "tool_calls"}
    for nothing in ("", None):
        message = {**CALLED, "tool_calls": [call(name="f", arguments=nothing)]}
        assert whole("tool_calls", **message)["message"]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_are_a_string() -> None:
    """LangChain, pydantic-ai and the Agents SDK break on an object."""
    one = chunks(read(BEGIN, delta(tool_calls=[call(name="f", arguments={"a": [1]})]), delta("tool_calls")))[1]
    assert one["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] == '{"a":[1]}'
    message = {**CALLED, "tool_calls": [call(name="f", arguments={"a": 1})]}
    assert whole("tool_calls", **message)["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'


def test_a_calls_name_and_id_are_said_once() -> None:
    """Clients put pieces together: `get_weatherget_weather`."""
    again = delta(tool_calls=[call(name="f", arguments="1}")])
    null = delta(tool_calls=[{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": " "}}])
    got = chunks(read(BEGIN, TALK, delta(tool_calls=[call(name="f", arguments='{"a":')]), again, null, delta("tool_calls")))
    assert [one["choices"][0]["delta"]["tool_calls"] for one in got[3:5]] == [[call(arguments="1}")], [call(arguments=" ")]]


@pytest.mark.parametrize(
    "first", [{"role": "assistant", "content": None}, {"role": "assistant"}, {"role": None, "content": ""}, {}]
)
def test_the_first_delta_says_whose_words_come_and_has_content(first: dict[str, Any]) -> None:
    """cline#12132: "text part not found" after a delta without content; openai-node: "missing role for choice 0"."""
    got = split(read(delta(**first), TALK, delta("stop")))
    assert orjson.loads(got[0][6:])["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert got[1] == TALK


def test_a_chunk_without_index_or_delta_gets_them() -> None:
    got = chunks(read(frame({"delta": {"role": "assistant", "content": "a"}}), frame({"index": 0, "finish_reason": "stop"})))
    assert [one["choices"][0]["index"] for one in got] == [0, 0]
    assert got[1]["choices"][0]["delta"] == {}


def test_no_chunk_comes_without_choices_unless_usage_was_asked_for() -> None:
    """osaurus#1661, llmeter#34: clients look into the first choice of every chunk."""
    usage = frame(usage={"prompt_tokens": 1, "completion_tokens": 1})
    stream = [frame(), BEGIN, TALK, frame(), b'data: {"choices":null}\n\n', delta("stop"), usage, DONE]
    assert read(*stream) == b"".join([BEGIN, TALK, delta("stop"), DONE])
    assert read(*stream, wants_usage=True) == b"".join([BEGIN, TALK, delta("stop"), usage, DONE])


@pytest.mark.parametrize("body", [b'{"choices":[]}', b'{"choices":null}', b'{"error":{"message":"x"}}', b'{"object":"error"}'])
def test_a_whole_answer_without_choices_is_none(body: bytes) -> None:
    """An IndexError in openai-python, LangChain, litellm and pydantic-ai; or an empty success."""
    with pytest.raises(StreamBroke):
        CHUNKS.whole(body, QUESTION)


def test_usage_on_every_chunk_comes_once_where_it_was_asked_for() -> None:
    """LangChain and pydantic-ai add them up."""

    def counted(tokens: int, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": finish}
        return frame(choice, usage={"prompt_tokens": 1, "completion_tokens": tokens})

    stream = [counted(1), counted(2), counted(3, "stop")]
    got = chunks(read(*stream, wants_usage=True))
    assert [one.get("usage") for one in got] == [None, None, None, {"prompt_tokens": 1, "completion_tokens": 3}]
    assert got[-1]["choices"] == []
    assert not any("usage" in one for one in chunks(read(*stream)))
    asked = read(*stream, frame(usage={"completion_tokens": 3}), DONE, wants_usage=True)
    assert asked.count(b'"usage"') == 1


def test_reasoning_has_the_name_that_clients_know_and_words_like_it_stay() -> None:
    said = delta(content='the key "reasoning":" is text here')
    stream = read(BEGIN, delta(reasoning="hm"), delta(reasoning='so "reasoning":"'), said, delta("stop"))
    assert stream == read(BEGIN, delta(reasoning_content="hm"), delta(reasoning_content='so "reasoning":"'), said, delta("stop"))
    both = delta(reasoning="hm", reasoning_content="hm")
    assert both in read(BEGIN, both, delta("stop"))
    assert whole(role="assistant", content="a", reasoning="hm")["message"] == {
        "role": "assistant", "content": "a", "reasoning_content": "hm",
    }  # fmt: skip


@pytest.mark.parametrize("noise", [b": ping\n\n", b"event: ping\ndata: {}\n\n", b"id: 7\n\n", b"retry: 5\n\n"])
def test_an_engines_comments_and_names_are_taken_out_wherever_they_stand(noise: bytes) -> None:
    """`event: ping` breaks openai-node, AI SDK, LlamaIndex and OpenCode; they must not pass with the text either."""
    body = [noise, BEGIN, noise, TALK, noise + TALK, TALK + noise, delta("stop"), noise, DONE]
    assert read(*body) == b"".join([BEGIN, TALK, TALK, TALK, delta("stop"), DONE])
    assert read(b"".join(body)) == read(*body)


def test_a_named_frame_keeps_its_data() -> None:
    assert read(BEGIN, TALK, b": c\nid: 1\n" + TALK, delta("stop")) == BEGIN + TALK + TALK + delta("stop") + DONE


def test_text_completions_have_no_delta_put_in() -> None:
    stream = [frame({"index": 0, "text": text, "finish_reason": finish}) for text, finish in (("a", None), ("b", "eos_token"))]
    got = chunks(read(*stream))
    assert [one["choices"][0] for one in got] == [
        {"index": 0, "text": "a", "finish_reason": None},
        {"index": 0, "text": "b", "finish_reason": "stop"},
    ]
