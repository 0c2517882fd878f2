"""A call that waits for a GPU: what it is told, how it is asked for, and when it is refused instead."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import BuildTown, Running, Town, wait_for
from tests.support.stream import taken_slots


@pytest.fixture(scope="module")
def narrow(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    """An engine that takes one call at a time, and a gateway that answers a waiting stream soon.

    A call comes first: for a second after it has found a Valkey that it does not know, a gateway lets nobody in.
    """
    with build_town(standing_engine.fleet_entry(slots=1)) as built:
        built.standing = built.gateway(commit_seconds=0.5)
        url = f"{built.standing.url}/v1/chat/completions"
        assert httpx2.post(url, json=chat(), headers=built.key().headers, timeout=20).status_code == 200
        yield built


def chat(said: str = "hi", **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": said}], **fields}


@asynccontextmanager
async def busy(narrow: Town, milliseconds: int) -> AsyncIterator[None]:
    """Somebody has the only slot for so long."""
    has_it = asyncio.create_task(call(narrow.gateway().port, narrow.key(), chat(f'@engine {{"delay_ms": {milliseconds}}}')))
    await asyncio.to_thread(wait_for, lambda: taken_slots(narrow.redis_url) == 1)
    yield
    assert (await has_it).status == 200
    await asyncio.to_thread(wait_for, lambda: taken_slots(narrow.redis_url) == 0)


async def test_an_answer_says_how_long_it_waited_and_where_it_stood(narrow: Town) -> None:
    port, customer = narrow.gateway().port, narrow.key()
    direct = await call(port, customer, chat())
    assert (int(direct.headers["x-faregate-queue-ms"]) < 200, "x-faregate-queue-position" in direct.headers) == (True, False)
    async with busy(narrow, 900):
        waited = await call(port, customer, chat())
    assert waited.status == 200
    assert 300 < int(waited.headers["x-faregate-queue-ms"]) < 5000
    assert waited.headers["x-faregate-queue-position"] == "1"


async def test_a_stream_that_waits_says_where_it_stands_and_can_be_asked_for(narrow: Town) -> None:
    gateway, customer, other_key = narrow.gateway(), narrow.key(), narrow.key()
    second = narrow.gateway(commit_seconds=0.5)
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=30) as client, busy(narrow, 4000):
        asked = client.stream("POST", "/v1/chat/completions", json=chat(stream=True), headers=customer.headers)
        async with asked as answer:
            assert answer.status_code == 200
            assert answer.headers["x-faregate-queue-position"] == "1"
            request_id = answer.headers["x-request-id"]
            parts = answer.aiter_text()
            assert (await anext(parts)).startswith(": waiting, position 1")
            await asyncio.sleep(1.6)  # by then every gateway is told
            for at in (gateway, second):
                entry = page(at, request_id, customer.headers)
                assert (entry["state"], entry["position"], entry["model"], entry["class"]) == ("waiting", 1, MODEL, "enterprise")
                assert entry["queue_ms"] > 500
                assert page(at, request_id, other_key.headers)["error"]["code"] == "not_in_queue"
            rest = "".join([part async for part in parts])
            assert rest.endswith("data: [DONE]\n\n")
    served = page(second, request_id, customer.headers)
    assert (served["state"], served["position"]) == ("served", None)
    assert 2500 < served["queue_ms"] < 8000
    assert page(gateway, "no-such-id", customer.headers)["error"]["code"] == "not_in_queue"


def page(gateway: Running, request_id: str, headers: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{gateway.url}/v1/queue/{request_id}", headers=headers).json()
    return found


async def refused_in(narrow: Town, max_wait_ms: str) -> tuple[Reply, float]:
    began = time.monotonic()
    async with httpx2.AsyncClient(base_url=narrow.gateway().url, timeout=30) as client:
        headers = {**narrow.key().headers, "x-faregate-max-wait-ms": max_wait_ms}
        answer = await client.post("/v1/chat/completions", json=chat(), headers=headers)
    return Reply(answer.status_code, dict(answer.headers), answer.content, whole=True), time.monotonic() - began


async def test_a_call_has_a_deadline_of_its_own(narrow: Town) -> None:
    async with busy(narrow, 4000):
        for max_wait_ms, soonest, latest in (("0", 0.0, 1.0), ("800", 0.7, 2.5)):
            refused, seconds = await refused_in(narrow, max_wait_ms)
            assert (refused.status, refused.error["code"]) == (503, "server_is_overloaded")
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert soonest < seconds < latest
    patient, _ = await refused_in(narrow, "3600000")
    assert patient.status == 200
    quick, _ = await refused_in(narrow, "0")  # a slot is free: nothing has to wait
    assert quick.status == 200


@pytest.mark.parametrize("max_wait_ms", ["", "-1", "1.5", "soon", "3600001", "99999999999999999999"])
async def test_a_deadline_that_is_none_is_refused(narrow: Town, max_wait_ms: str) -> None:
    refused, _ = await refused_in(narrow, max_wait_ms)
    assert (refused.status, refused.error["param"]) == (400, "x-faregate-max-wait-ms")


async def test_what_each_class_got_is_counted(narrow: Town) -> None:
    gateway, customer = narrow.gateway(), narrow.key("pro")
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=30) as client:
        for said in ("hi", '@engine {"delay_ms": 3200}'):
            answer = await client.post("/v1/chat/completions", json=chat(said, stream=True), headers=customer.headers)
            assert answer.status_code == 200
    async with busy(narrow, 1500):
        headers = {**customer.headers, "x-faregate-max-wait-ms": "100"}
        assert httpx2.post(f"{gateway.url}/v1/chat/completions", json=chat(), headers=headers).status_code == 503
    metrics = gateway.metrics()
    for line in (
        'faregate_class_calls_total{class="pro",outcome="served"} 2.0',
        'faregate_class_calls_total{class="pro",outcome="refused"} 1.0',
        'faregate_class_ttft_total{class="pro",target="attained"} 1.0',
        'faregate_class_ttft_total{class="pro",target="missed"} 1.0',
        'faregate_class_queue_seconds_count{class="pro"} 3.0',
        f'faregate_account_share{{account="{customer.account_id}",class="pro"}} 1.0',
        f'faregate_class_waiting{{class="pro",model="{MODEL}"}} 0.0',
        'faregate_replica_cap{replica="stand-in"} 1.0',
    ):
        assert line in metrics
    assert 'faregate_class_useful_tokens_total{class="pro",kind="completion"} ' in metrics
