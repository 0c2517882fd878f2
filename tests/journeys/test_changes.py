"""Changes reach every gateway: a revoked key, a suspended account, a dead replica, a restart."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis

from billing.accounts import resume_account, set_plan, suspend_account
from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, get, town, wait_for
from tests.support.ledger import rows
from tests.support.stream import open_holds

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


def scripted(**script: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "@engine " + json.dumps(script)}]}


async def test_a_revoked_key_is_refused_on_a_second_gateway_at_its_next_call(faregate: Town) -> None:
    """Nothing is published: the version that the gate compares is what stops it."""
    faregate.worker()
    first, second, customer = faregate.gateway(), faregate.gateway(), faregate.key()
    assert {reply.status for reply in await crowd([first.port, second.port], customer, CHAT, 4)} == {200}
    with redis.Redis.from_url(faregate.redis_url) as client:
        client.client_kill_filter(_type="pubsub")
    faregate.revoke(customer)
    await asyncio.to_thread(faregate.settled_changes)
    for gateway in (second, first):
        reply = await call(gateway.port, customer, CHAT)
        assert reply.status == 401
        assert "revoked" in reply.error["message"]


async def test_a_revoked_key_stops_within_a_second(faregate: Town) -> None:
    faregate.worker()
    gateway, customer = faregate.gateway(), faregate.key()
    assert (await call(gateway.port, customer, CHAT)).status == 200
    faregate.revoke(customer)
    revoked_at = time.monotonic()
    while (await call(gateway.port, customer, CHAT)).status == 200:
        assert time.monotonic() - revoked_at < 1
        await asyncio.sleep(0.02)
    assert httpx2.get(f"{gateway.url}/v1/models", headers=customer.headers).status_code == 401


async def test_a_suspended_account_stops_and_goes_on(faregate: Town) -> None:
    faregate.worker()
    gateway, customer = faregate.gateway(), faregate.key()
    assert (await call(gateway.port, customer, CHAT)).status == 200
    with faregate.record() as connection:
        suspend_account(connection, customer.account_id, actor="test")
    await asyncio.to_thread(faregate.settled_changes)
    assert (await call(gateway.port, customer, CHAT)).error["code"] == "account_suspended"
    with faregate.record() as connection:
        resume_account(connection, customer.account_id, actor="test")
    # The refused calls asked nobody, so it is the snapshot's age that lets the change through.
    await asyncio.sleep(1.1)
    assert (await call(gateway.port, customer, CHAT)).status == 200


async def test_an_upgrade_opens_what_the_old_plan_refused(faregate: Town) -> None:
    """A refusal from the cached plan never reaches the gate, which would have called the snapshot stale."""
    gateway, customer = faregate.gateway(), faregate.key("free")
    assert (await call(gateway.port, customer, {**CHAT, "n": 3})).error["code"] == "over_plan_limit"
    with faregate.record() as connection:
        set_plan(connection, customer.account_id, "pro", actor="test")
    await asyncio.sleep(1.1)
    assert (await call(gateway.port, customer, {**CHAT, "n": 3})).status == 200


@pytest.fixture
def two(stand_in_engine: Callable[..., StandInEngine]) -> list[StandInEngine]:
    return [stand_in_engine(model=MODEL), stand_in_engine(model=MODEL)]


@pytest.fixture
def pair(database_url: str, valkey_url: str, tmp_path: Path, two: list[StandInEngine]) -> Iterator[Town]:
    fleet = two[0].fleet_entry("one") + two[1].fleet_entry("two")
    with town(database_url, valkey_url, tmp_path, fleet) as built:
        yield built


async def test_an_engine_that_dies_before_its_first_byte_is_invisible(pair: Town, two: list[StandInEngine]) -> None:
    gateway, customer = pair.gateway(), pair.key()
    calls = asyncio.create_task(crowd([gateway.port], customer, scripted(delay_ms=400), 20))
    await asyncio.to_thread(two[0].wait_for, lambda journal: journal["running"] >= 5)
    two[0].kill()
    replies = await calls
    assert {reply.status for reply in replies} == {200}
    assert {reply.status for reply in await crowd([gateway.port], customer, CHAT, 20)} == {200}
    wait_for(lambda: open_holds(pair.redis_url) == 0)


async def test_both_replicas_share_the_load(pair: Town, two: list[StandInEngine]) -> None:
    gateway, customer = pair.gateway(), pair.key()
    await crowd([gateway.port], customer, scripted(delay_ms=100), 40)
    assert min(len(engine.journal()["requests"]) for engine in two) >= 15


async def test_without_any_engine_the_answer_is_a_quick_503_and_readiness_says_why(faregate: Town, engine: StandInEngine) -> None:
    gateway, customer = faregate.gateway(), faregate.key()
    engine.kill()
    wait_for(lambda: get(gateway.ops_port, "/readyz")[0] == 503)
    assert b"no engine replica is healthy" in get(gateway.ops_port, "/readyz")[1]
    began = time.monotonic()
    reply = await call(gateway.port, customer, CHAT)
    assert (reply.status, time.monotonic() - began < 1) == (503, True)
    assert 1 <= int(reply.headers["retry-after"]) <= 60


async def test_sigterm_drains_running_calls_finish_new_ones_are_refused_the_meter_is_flushed(faregate: Town) -> None:
    faregate.worker()
    gateway, customer = faregate.gateway(), faregate.key()
    running = asyncio.create_task(crowd([gateway.port], customer, {**scripted(chunks=20, pace_ms=100), "stream": True}, 10))
    await asyncio.sleep(0.8)
    gateway.process.terminate()
    wait_for(lambda: get(gateway.ops_port, "/readyz")[0] == 503)
    refused = await call(gateway.port, customer, CHAT)
    assert refused.status in (0, 503)
    replies = await running
    assert all(reply.status == 200 and reply.body.endswith(b"data: [DONE]\n\n") for reply in replies)
    assert await asyncio.to_thread(gateway.process.wait, 10) == 0
    assert open_holds(faregate.redis_url) == 0
    wait_for(lambda: len(rows(faregate.database_url, customer)) == 10)
    assert {row.verdict for row in rows(faregate.database_url, customer)} == {"posted"}


async def test_a_drain_that_takes_too_long_cuts_and_voids(faregate: Town) -> None:
    gateway, customer = faregate.gateway(drain_seconds=0.5), faregate.key()
    running = asyncio.create_task(crowd([gateway.port], customer, {**scripted(chunks=500, pace_ms=50), "stream": True}, 3))
    await asyncio.sleep(0.8)
    assert await asyncio.to_thread(gateway.stop) == 0
    assert not any(reply.whole for reply in await running)
    assert open_holds(faregate.redis_url) == 0
