"""An engine that is too slow is given up at each stage by a limit of its own, told in the way of each API, and not billed."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, chat, steered
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"


@pytest.fixture(scope="module")
def hasty(standing_town: Town) -> Iterator[Running]:
    running = standing_town.gateway(first_byte_seconds=0.8, stream_idle_seconds=0.8)
    yield running
    running.kill()


@pytest.fixture
def gateway(hasty: Running, standing_town: Town) -> Running:
    """After a good call: the faults of several tests would add up, and the engine not be asked."""
    assert httpx2.post(hasty.url + CHAT, content=chat(), headers=standing_town.key().headers).status_code == 200
    return hasty


def ask(gateway: Running, customer: Customer, path: str, **script: object) -> httpx2.Response:
    prompt = steered(**script)
    asked = {"input": prompt[0]["content"]} if path == RESPONSES else {"messages": prompt, "max_tokens": 50}
    body = {"model": MODEL, "stream": True, **asked}
    return httpx2.post(gateway.url + path, json=body, headers=customer.headers, timeout=10)


def voided(town: Town, customer: Customer, reason: str) -> bool:
    wait_for(lambda: len(settled(town.redis_url, customer)) == 1 and not open_holds(town.redis_url))
    [event] = settled(town.redis_url, customer)
    return (event.verdict, event.reason) == ("voided", reason)


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_a_stream_that_never_begins_is_a_504(
    standing_town: Town, standing_engine: StandInEngine, gateway: Running, path: str
) -> None:
    customer = standing_town.key()
    answer = ask(gateway, customer, path, hang=True)
    assert answer.status_code == 504
    assert "did not answer in time" in answer.json()["error"]["message"]
    assert voided(standing_town, customer, "timed_out")
    standing_engine.wait_for(lambda journal: journal["running"] == 0)


@pytest.mark.parametrize(
    ("path", "end"), [(CHAT, "data: [DONE]\n\n"), (RESPONSES, '"sequence_number":'), (MESSAGES, '"type":"timeout_error"')]
)
def test_a_stream_that_falls_silent_in_the_middle_ends_with_an_error(
    standing_town: Town, standing_engine: StandInEngine, gateway: Running, path: str, end: str
) -> None:
    """The answer stopped, and a client that was told nothing took it for a whole one."""
    customer = standing_town.key()
    answer = ask(gateway, customer, path, chunks=9, hang_after=2)
    assert answer.status_code == 200
    assert answer.text.count('"tok ') >= 2
    assert "did not answer in time" in answer.text
    assert end in answer.text[-400:]
    assert voided(standing_town, customer, "timed_out")
    standing_engine.wait_for(lambda journal: journal["running"] == 0)


def test_a_slow_stream_and_a_long_answer_are_not_given_up(standing_town: Town, gateway: Running) -> None:
    """Each silence is within its limit; of an answer that is not streamed nothing can come before its last token."""
    customer = standing_town.key()
    assert ask(gateway, customer, CHAT, chunks=7, pace_ms=200).text.endswith("data: [DONE]\n\n")
    body = json.loads(chat(messages=steered(delay_ms=1200)))
    assert httpx2.post(gateway.url + CHAT, json=body, headers=customer.headers, timeout=10).status_code == 200
