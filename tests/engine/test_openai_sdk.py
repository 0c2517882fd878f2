"""The OpenAI SDK on a real vLLM, through the whole gateway: chat, schemas, tools, texts, Responses, embeddings."""

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from openai import BadRequestError, OpenAI

from tests.engine.counted import Tokens, only_event_of
from tests.engine.vllm import CHAT, CONTEXT_TOKENS, VECTORS, Vllm
from tests.recordings.words import CITY, PERSON, WEATHER, chat_tool, response_tool
from tests.support.gateway import Customer, Town

pytestmark = pytest.mark.engine

HELLO: Any = [{"role": "user", "content": "Say hello."}]
PERSONS: Any = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
# Without `strict` a forced call may have any arguments, with it vLLM holds them to the schema.
TOOLS: Any = [{"type": "function", "function": {**chat_tool()["function"], "strict": True}}]
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}
# Forces the text, thoughts included; the bias makes the model end its thought with the token that is meant for it.
THOUGHT: Any = {
    "structured_outputs": {"regex": r"It is a greeting\.</think>Hello there\."},
    "chat_template_kwargs": {"thinking": True},
    "logit_bias": {"8": 100},
}


@pytest.fixture
def customer(faregate: Town) -> Customer:
    return faregate.key()


@pytest.fixture
def client(faregate: Town, customer: Customer) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{faregate.gateway().url}/v1", api_key=customer.token, max_retries=0, timeout=120) as built:
        yield built


def test_a_chat_is_told_counted_and_settled_alike(faregate: Town, vllm: Vllm, client: OpenAI, customer: Customer) -> None:
    before = Tokens.of_engine(vllm.url)
    answer = client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=12, temperature=0)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    told = Tokens(answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert told.completion == 12
    assert Tokens.of_engine(vllm.url).since(before) == told == Tokens.of_event(only_event_of(faregate, customer))


def test_a_stream_is_told_counted_and_settled_alike(faregate: Town, vllm: Vllm, client: OpenAI, customer: Customer) -> None:
    before = Tokens.of_engine(vllm.url)
    stream = client.chat.completions.create(
        model=CHAT, messages=HELLO, max_tokens=12, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert [chunk.usage for chunk in chunks[:-1] if chunk.usage] == []
    assert (chunks[-1].choices, chunks[-2].choices[0].finish_reason) == ([], "length")
    assert chunks[-1].usage is not None
    told = Tokens(chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens)
    assert Tokens.of_engine(vllm.url).since(before) == told == Tokens.of_event(only_event_of(faregate, customer))


def test_a_stream_that_asks_for_no_usage_has_a_choice_in_every_chunk_and_is_counted(
    faregate: Town, vllm: Vllm, client: OpenAI, customer: Customer
) -> None:
    before = Tokens.of_engine(vllm.url)
    stream = client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=12, stream=True)
    assert all(len(chunk.choices) == 1 for chunk in stream)
    assert Tokens.of_engine(vllm.url).since(before) == Tokens.of_event(only_event_of(faregate, customer))


def test_a_prompt_that_came_before_is_cached(client: OpenAI) -> None:
    long: Any = [{"role": "system", "content": "Be kind. " * 200}, {"role": "user", "content": "Hi."}]
    cached = []
    for _ in range(2):
        answer = client.chat.completions.create(model=CHAT, messages=long, max_tokens=2)
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        cached.append(answer.usage.prompt_tokens_details.cached_tokens)
    assert cached[0] == 0
    assert cached[1] is not None
    assert cached[1] >= 256


def test_a_strict_schema_is_kept(client: OpenAI) -> None:
    asked: Any = [{"role": "user", "content": "A person."}]
    whole = client.chat.completions.create(model=CHAT, messages=asked, max_tokens=60, temperature=0, response_format=PERSONS)
    jsonschema.validate(json.loads(whole.choices[0].message.content or ""), PERSON)
    with client.chat.completions.stream(model=CHAT, messages=asked, max_tokens=60, response_format=PERSONS) as stream:
        streamed = stream.get_final_completion().choices[0].message.content
    jsonschema.validate(json.loads(streamed or ""), PERSON)


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_tool_is_called_and_its_result_answered(client: OpenAI, choice: Any) -> None:
    asked: Any = [{"role": "user", "content": WEATHER}]
    whole = client.chat.completions.create(
        model=CHAT, messages=asked, tools=TOOLS, tool_choice=choice, max_tokens=96, temperature=0
    )
    with client.chat.completions.stream(
        model=CHAT, messages=asked, tools=TOOLS, tool_choice=choice, max_tokens=96, temperature=0
    ) as stream:
        streamed = stream.get_final_completion()
    for answer in (whole, streamed):
        assert answer.choices[0].finish_reason == "tool_calls"
        [call] = answer.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == "get_weather"
        jsonschema.validate(json.loads(call.function.arguments), CITY)
    [call] = whole.choices[0].message.tool_calls or []
    history = [*asked, whole.choices[0].message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"}]
    told = client.chat.completions.create(model=CHAT, messages=history, tools=TOOLS, max_tokens=12)
    assert told.choices[0].message.content


def test_thoughts_come_under_the_name_that_clients_read(client: OpenAI) -> None:
    whole = client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=60, extra_body=THOUGHT)
    assert whole.choices[0].message.content == "Hello there."
    assert whole.choices[0].message.to_dict()["reasoning_content"] == "It is a greeting."
    stream = client.chat.completions.create(model=CHAT, messages=HELLO, max_tokens=60, stream=True, extra_body=THOUGHT)
    deltas = [chunk.choices[0].delta.to_dict() for chunk in stream]
    assert "".join(str(delta.get("reasoning_content") or "") for delta in deltas) == "It is a greeting."


def test_a_text_is_completed(client: OpenAI) -> None:
    whole = client.completions.create(model=CHAT, prompt="Once upon a time", max_tokens=8, temperature=0)
    stream = client.completions.create(model=CHAT, prompt="Once upon a time", max_tokens=8, temperature=0, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text != ""


def test_more_than_the_context_is_refused_in_the_engines_words_and_costs_nothing(
    faregate: Town, client: OpenAI, customer: Customer
) -> None:
    too_long: Any = [{"role": "user", "content": "one two three four five " * (CONTEXT_TOKENS // 4)}]
    with pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(model=CHAT, messages=too_long)
    assert f"maximum context length is {CONTEXT_TOKENS} tokens" in refused.value.message
    assert only_event_of(faregate, customer).verdict == "voided"


def test_an_embedding_is_the_same_in_both_encodings(vectors: Vllm, client: OpenAI) -> None:
    floats = client.embeddings.create(model=VECTORS, input=["Hello", "Bread"], encoding_format="float")
    packed = client.embeddings.with_raw_response.create(model=VECTORS, input=["Hello", "Bread"], encoding_format="base64")
    data = json.loads(packed.text)["data"]
    unpacked = [struct.unpack("<384f", base64.b64decode(each["embedding"])) for each in data]
    for mine, theirs in zip(floats.data, unpacked, strict=True):
        assert mine.embedding == pytest.approx(theirs, abs=1e-6)
        assert sum(value * value for value in theirs) == pytest.approx(1, abs=1e-3)


def test_a_response_is_told_counted_and_settled_alike(faregate: Town, vllm: Vllm, client: OpenAI, customer: Customer) -> None:
    before = Tokens.of_engine(vllm.url)
    with client.responses.stream(model=CHAT, input="Say hello.", max_output_tokens=400, temperature=0) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text != ""
    assert final.status == "completed"
    assert final.usage is not None
    told = Tokens(final.usage.input_tokens, final.usage.output_tokens)
    assert Tokens.of_engine(vllm.url).since(before) == told == Tokens.of_event(only_event_of(faregate, customer))


def test_a_response_calls_a_tool_and_takes_its_result(client: OpenAI) -> None:
    tools: Any = [{**response_tool(), "strict": True}]
    asked: Any = {"role": "user", "content": WEATHER}
    first = client.responses.create(
        model=CHAT, input=[asked], tools=tools, tool_choice="required", max_output_tokens=96, temperature=0
    )
    [call] = [item for item in first.output if item.type == "function_call"]
    jsonschema.validate(json.loads(call.arguments), CITY)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
    replayed: Any = call.to_dict()
    second = client.responses.create(model=CHAT, input=[asked, replayed, result], tools=tools, max_output_tokens=12)
    assert second.output_text
