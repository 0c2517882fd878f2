"""Replicas that work for one account alone: who gets them, and where that account's calls go when they are busy."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import BuildTown, Customer, Town, wait_for
from tests.support.stream import settled, taken_slots

OTHER_MODEL = "qwen3-8b"
BUSY = '@engine {"delay_ms": 400}'


def fleet(engine: StandInEngine) -> str:
    """One engine behind all of them: a replica is what the gateway takes it for."""
    own = [
        ("never-co", MODEL, "never"),
        ("queue-co", MODEL, "queue"),
        ("shared-co", MODEL, "shared"),
        ("alone-co", OTHER_MODEL, "shared"),
    ]
    entries = [engine.fleet_entry("everybody", slots=1)]
    for account, model, overflow in own:
        entry = engine.fleet_entry(f"of-{account}", slots=1).replace(MODEL, model)
        entries.append(f'{entry}dedicated_to = "{account}"\noverflow = "{overflow}"\nengine_model = "{MODEL}"\n')
    return "\n".join(entries)


@pytest.fixture(scope="module")
def estate(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    with build_town(fleet(standing_engine)) as built:
        built.standing = built.gateway()
        yield built


def chat(said: str = BUSY, model: str = MODEL) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": said}]}


def replicas(estate: Town, customer: Customer, calls: int) -> list[str]:
    """Which ones served it, in the order of the ends."""
    wait_for(lambda: len(settled(estate.redis_url, customer)) == calls)
    return [event.event["replica"] for event in settled(estate.redis_url, customer)]


async def test_everybody_else_shares_what_is_left(estate: Town) -> None:
    stranger = estate.key(name="stranger-co")
    replies = await crowd([estate.gateway().port], stranger, chat(), 2)
    assert {reply.status for reply in replies} == {200}
    assert replicas(estate, stranger, 2) == ["everybody", "everybody"]


async def test_never_is_refused_at_once(estate: Town) -> None:
    port, owner = estate.gateway().port, estate.key(name="never-co")
    first = asyncio.create_task(call(port, owner, chat('@engine {"delay_ms": 2000}')))
    await asyncio.to_thread(wait_for, lambda: taken_slots(estate.redis_url) == 1)
    began = time.monotonic()
    refused = await call(port, owner, chat())
    assert (refused.status, refused.error["code"]) == (503, "server_is_overloaded")
    assert "retry-after" in refused.headers
    assert time.monotonic() - began < 1.5
    assert (await first).status == 200
    assert sorted(filter(None, replicas(estate, owner, 2))) == ["of-never-co"]


async def test_queue_waits_for_its_own(estate: Town) -> None:
    owner = estate.key(name="queue-co")
    replies = await crowd([estate.gateway().port], owner, chat(), 3)
    assert {reply.status for reply in replies} == {200}
    assert replicas(estate, owner, 3) == ["of-queue-co"] * 3


async def test_shared_goes_on_to_what_everybody_has(estate: Town) -> None:
    owner = estate.key(name="shared-co")
    replies = await crowd([estate.gateway().port], owner, chat(), 3)
    assert {reply.status for reply in replies} == {200}
    assert sorted(replicas(estate, owner, 3)) == ["everybody", "everybody", "of-shared-co"]
    assert (await call(estate.gateway().port, owner, chat("hi"))).status == 200
    assert replicas(estate, owner, 4)[-1] == "of-shared-co"


async def test_a_model_of_one_account_is_on_nobody_elses_menu(estate: Town) -> None:
    gateway, owner, stranger = estate.gateway(), estate.key(name="alone-co"), estate.key()
    for customer, models in ((owner, {MODEL, OTHER_MODEL}), (stranger, {MODEL})):
        page = httpx2.get(f"{gateway.url}/v1/models", headers=customer.headers).json()
        assert {card["id"] for card in page["data"]} == models
    for spelled in (OTHER_MODEL, OTHER_MODEL.upper()):
        assert (await call(gateway.port, owner, chat("hi", spelled))).status == 200
        refused = await call(gateway.port, stranger, chat("hi", spelled))
        assert (refused.status, refused.error["code"]) == (404, "model_not_found")
    assert replicas(estate, owner, 2) == ["of-alone-co"] * 2
