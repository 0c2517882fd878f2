"""A gateway in front of llama.cpp, as `make up` has it: what its events and formats lack is not missed by the SDK."""

import json
from collections.abc import Iterator

import pytest
from openai import OpenAI
from pydantic import BaseModel

from gateway.local.llamacpp import MODEL, LlamaCpp
from tests.support.gateway import BuildTown, Town, wait_for
from tests.support.stream import open_holds, settled

pytestmark = pytest.mark.xdist_group("llamacpp")


@pytest.fixture(scope="module")
def here(llamacpp: LlamaCpp, build_town: BuildTown) -> Iterator[Town]:
    fleet = f'[[replica]]\nid = "local"\nmodel = "{MODEL}"\nengine = "llamacpp"\nurl = "{llamacpp.url}"\nslots = 2\n'
    with build_town(fleet) as built:
        built.standing = built.gateway()
        yield built


@pytest.fixture
def client(here: Town) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{here.gateway().url}/v1", api_key=here.key().token, max_retries=0) as built:
        yield built


class Person(BaseModel):
    name: str
    age: int


def test_the_sdks_own_stream_builds_an_answer(here: Town, client: OpenAI) -> None:
    with client.responses.stream(model=MODEL, input="Reply with one word: yes or no?", temperature=0) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text
    assert final.output_text == text
    assert final.usage is not None
    wait_for(lambda: not open_holds(here.redis_url))
    (event,) = settled(here.redis_url, here.customers[-1])
    assert (event.verdict, event.event["completion_tokens"]) == ("posted", final.usage.output_tokens)


def test_a_schema_is_kept_to(client: OpenAI) -> None:
    answer = client.responses.parse(model=MODEL, input="A person.", text_format=Person, max_output_tokens=60, temperature=0)
    assert answer.output_parsed is not None
    assert set(json.loads(answer.output_text)) == {"name", "age"}


def test_an_answer_that_reached_its_limit_is_incomplete(client: OpenAI) -> None:
    answer = client.responses.create(model=MODEL, input="Tell me a long story.", max_output_tokens=5)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
