"""Conversations come back to the replica that has computed them, through the whole gateway."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.support.crowd import call
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import BuildTown, Customer, Town, wait_for
from tests.support.stream import settled

REPLICAS = 4


@pytest.fixture(scope="module")
def estate(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    """One engine behind four names: a replica is what the gateway takes it for."""
    with build_town("\n".join(standing_engine.fleet_entry(f"r{index}", slots=4) for index in range(REPLICAS))) as built:
        built.standing = built.gateway()
        yield built


def said(*turns: str) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[index % 2], "content": turn} for index, turn in enumerate(turns)]
    return {"model": MODEL, "messages": messages}


def words(name: str, many: int = 200) -> str:
    return " ".join(f"{name}{index}" for index in range(many))


def ask(estate: Town, customer: Customer, body: dict[str, Any]) -> None:
    answer = httpx2.post(f"{estate.gateway().url}/v1/chat/completions", json=body, headers=customer.headers)
    assert answer.status_code == 200, answer.text


def served_by(estate: Town, customer: Customer, calls: int) -> list[str]:
    wait_for(lambda: len(settled(estate.redis_url, customer)) == calls)
    return [event.event["replica"] for event in settled(estate.redis_url, customer)]


def test_a_conversation_stays_where_it_began(estate: Town) -> None:
    customer = estate.key()
    for number in range(8):
        turns = [words(f"q{number}")]
        for turn in range(3):
            ask(estate, customer, said(*turns))
            turns += [words(f"a{turn}"), words(f"more{number}{turn}")]
    served = served_by(estate, customer, 24)
    assert [len(set(served[at : at + 3])) for at in range(0, 24, 3)] == [1] * 8
    assert len(set(served)) > 1


def test_the_same_words_of_another_account_are_no_reason_to_follow(estate: Town) -> None:
    """Their caches are apart, so what one has sent says nothing of where the other should go."""
    accounts = [estate.key() for _ in range(8)]
    for customer in accounts:
        ask(estate, customer, said(words("the same for all")))
    homes = [served_by(estate, customer, 1)[0] for customer in accounts]
    assert len(set(homes)) > 1
    for customer in accounts:
        ask(estate, customer, said(words("the same for all"), "yes", "go on"))
    assert [served_by(estate, customer, 2)[1] for customer in accounts] == homes


async def test_a_crowd_with_one_beginning_does_not_pile_up_on_one_replica(estate: Town) -> None:
    customer = estate.key()
    bodies = [said(words("hot", 400), "yes", f'@engine {{"delay_ms": 400}} {number}') for number in range(14)]
    replies = await asyncio.gather(*(call(estate.gateway().port, customer, body) for body in bodies))
    assert {reply.status for reply in replies} == {200}
    spread = Counter(served_by(estate, customer, 14))
    assert len(spread) == REPLICAS
    assert max(spread.values()) == 4  # its slots
