"""A slot asked back for a higher class before the first output: the client that gives it up notices nothing but the wait."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Customer, Running, Town, town, wait_for


@pytest.fixture
def narrow(database_url: str, valkey_url: str, tmp_path: Path, engine: StandInEngine) -> Iterator[Town]:
    """An installation whose engine takes one call at a time, with a customer of Free and one of Premium."""
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry(slots=1)) as built:
        built.plan("low", service_class="free")
        built.plan("high", service_class="premium")
        yield built


def chat(stream: bool, **script: Any) -> dict[str, Any]:
    return {"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": "@engine " + json.dumps(script)}]}


def ended(gateway: Running) -> list[dict[str, Any]]:
    return [line for line in gateway.lines() if line["event"] == "call"]


async def low_then_high(
    gateway: Running, engine: StandInEngine, low: Customer, high: Customer, body: dict[str, Any]
) -> tuple[Reply, Reply, list[str]]:
    """Their answers, and who was answered first."""
    order: list[str] = []

    async def one(name: str, customer: Customer, body: dict[str, Any]) -> Reply:
        reply = await call(gateway.port, customer, body)
        order.append(name)
        return reply

    first = asyncio.create_task(one("low", low, body))
    await asyncio.to_thread(engine.wait_for, lambda journal: journal["running"] == 1)
    await asyncio.sleep(0.15)
    second = await one("high", high, chat(stream=True))
    return await first, second, order


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_without_output_gives_its_slot_to_a_higher_class(narrow: Town, engine: StandInEngine, stream: bool) -> None:
    gateway, low, high = narrow.gateway(), narrow.key("low"), narrow.key("high")
    first, second, order = await low_then_high(gateway, engine, low, high, chat(stream, delay_ms=1500))
    assert (first.status, second.status) == (200, 200)
    assert first.whole
    assert order == ["high", "low"]
    requests = engine.journal()["requests"]
    assert len(requests) == 3, "low was sent, cut, and sent again after high"
    await asyncio.to_thread(wait_for, lambda: len(ended(gateway)) == 2)
    assert [line["attempts"] for line in ended(gateway)] == [1, 1], "giving way is no failed attempt"
    assert [line["call"]["status"] for line in ended(gateway)] == [200, 200]


async def test_a_stream_with_output_is_never_cut(narrow: Town, engine: StandInEngine) -> None:
    gateway, low, high = narrow.gateway(), narrow.key("low"), narrow.key("high")
    first, second, order = await low_then_high(gateway, engine, low, high, chat(stream=True, chunks=10, pace_ms=100))
    assert (first.status, second.status) == (200, 200)
    assert order == ["low", "high"]
    assert len(engine.journal()["requests"]) == 2


async def test_a_call_gives_way_twice_and_no_more(narrow: Town, engine: StandInEngine) -> None:
    gateway, low, high = narrow.gateway(), narrow.key("low"), narrow.key("high")
    patient = asyncio.create_task(call(gateway.port, low, chat(stream=True, delay_ms=1200)))
    for sent in (1, 3, 5):
        await asyncio.to_thread(engine.wait_for, lambda journal, sent=sent: len(journal["requests"]) == sent)  # type: ignore[misc]
        await asyncio.sleep(0.1)
        assert (await call(gateway.port, high, chat(stream=True))).status == 200
    assert (await patient).status == 200
    assert len(engine.journal()["requests"]) == 6, "three of low, three of high: the third time low was left to end"
