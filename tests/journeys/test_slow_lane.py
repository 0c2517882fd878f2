"""Beyond the quota: refused without a script, or run on what is idle at no fare where the plan says so."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from billing.plans import QueueTerms
from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call, crowd
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import OPEN_ENVELOPE, Town, town, wait_for
from tests.support.ledger import count, rows
from tests.support.stream import settled, taken_slots

SLOW = QueueTerms(beyond_quota="slow")


def chat(said: str = "hi", **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": said}], **fields}


def told(reply: Reply) -> tuple[str | None, ...]:
    return tuple(reply.headers.get(f"x-faregate-{name}") for name in ("fare", "remaining", "lane"))


async def test_calls_over_the_quota_run_at_no_fare_and_the_books_add_up(faregate: Town) -> None:
    faregate.plan("lane", quota_per_day=5, queue=SLOW)
    faregate.worker()
    gateway, customer = faregate.gateway(), faregate.key("lane")
    replies = await crowd([gateway.port], customer, chat(), 12)
    assert {reply.status for reply in replies} == {200}
    lanes = Counter((reply.headers["x-faregate-fare"], reply.headers.get("x-faregate-lane")) for reply in replies)
    assert lanes == {("1", None): 5, ("0", "slow"): 7}
    assert told(await call(gateway.port, customer, chat())) == ("0", "0", "slow")
    wait_for(lambda: len(rows(faregate.database_url, customer)) == 13)
    found = rows(faregate.database_url, customer)
    assert Counter((row.verdict, row.fare) for row in found) == {("posted", 1): 5, ("posted", 0): 8}
    assert count(faregate.database_url, "SELECT sum(fares) FROM usage_daily") == 5
    assert count(faregate.database_url, "SELECT sum(posted) FROM usage_daily") == 13
    page = gateway.metrics()
    assert 'faregate_class_calls_total{class="batch",outcome="served"} 8.0' in page
    assert 'faregate_class_calls_total{class="pro",outcome="served"} 5.0' in page


async def test_the_slow_lane_keeps_the_limits_at_once_and_a_keys_own_cap(shared: Town) -> None:
    shared.plan("capped", quota_per_day=1, queue=SLOW)
    shared.plan("alone", quota_per_day=0, queue=SLOW, envelope=replace(OPEN_ENVELOPE, concurrency=1))
    port, capped, alone = shared.gateway().port, shared.key("capped", quota_per_day=1), shared.key("alone")
    assert (await call(port, capped, chat())).status == 200
    refused = await call(port, capped, chat())
    assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
    wider = shared.key("capped", quota_per_day=3)
    assert (await call(port, wider, chat())).status == 200
    refused = await call(port, wider, chat(n=3))
    assert "You have used 1 of 3 requests today (this key's own quota)" in refused.error["message"]
    assert told(await call(port, wider, chat(n=2))) == ("0", "0", "slow")
    at_once = await crowd([port], alone, chat('@engine {"delay_ms": 200}'), 3)
    assert Counter(reply.status for reply in at_once) == {200: 1, 429: 2}
    codes = {reply.error["code"] for reply in at_once if reply.status == 429}
    assert codes == {"concurrency_limit_exceeded"}


async def test_a_failed_call_on_the_slow_lane_is_voided_like_any_other(shared: Town) -> None:
    shared.plan("failing", quota_per_day=0, queue=SLOW)
    gateway, customer = shared.gateway(), shared.key("failing")
    assert (await call(gateway.port, customer, chat('@engine {"status": 400}'))).status == 400
    assert told(await call(gateway.port, customer, chat(n=3))) == ("0", "0", "slow")
    wait_for(lambda: len(settled(shared.redis_url, customer)) == 2)
    ends = [(event.verdict, event.event["fare"]) for event in settled(shared.redis_url, customer)]
    assert ends == [("voided", 0), ("posted", 0)]


@pytest.fixture
def narrow(database_url: str, valkey_url: str, tmp_path: Path, engine: StandInEngine) -> Iterator[Town]:
    """An installation whose engine takes one call at a time."""
    with town(database_url, valkey_url, tmp_path, engine.fleet_entry(slots=1)) as built:
        yield built


async def test_the_slow_lane_waits_behind_those_who_pay(narrow: Town, engine: StandInEngine) -> None:
    narrow.plan("lane", quota_per_day=0, queue=SLOW)
    port, slow, paying = narrow.gateway().port, narrow.key("lane"), narrow.key("free")
    busy = asyncio.create_task(call(port, paying, chat('@engine {"chunks": 1, "pace_ms": 700}', user="first")))
    await asyncio.to_thread(engine.wait_for, lambda journal: journal["running"] == 1)
    late = asyncio.create_task(call(port, slow, chat(user="slow")))
    await asyncio.sleep(0.2)
    paid = asyncio.create_task(call(port, paying, chat(user="paid")))
    assert {reply.status for reply in await asyncio.gather(busy, late, paid)} == {200}
    assert [entry["body"]["user"] for entry in engine.journal()["requests"]] == ["first", "paid", "slow"]


def scripts(town: Town) -> int:
    with redis.Redis.from_url(town.redis_url) as client:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


async def test_a_flood_on_a_spent_key_runs_no_script_and_takes_no_slot(shared: Town, standing_engine: StandInEngine) -> None:
    shared.plan("one", quota_per_day=1)
    port, customer = shared.gateway().port, shared.key("one")
    assert (await call(port, customer, chat("the one"))).status == 200
    assert (await call(port, customer, chat("one more"))).status == 429
    before, began = scripts(shared), time.monotonic()
    await asyncio.sleep(2.0)
    beats_a_second = (scripts(shared) - before) / (time.monotonic() - began)
    before, began, replies = scripts(shared), time.monotonic(), list[Reply]()
    for number in range(20):  # bodies differ: it is not for repeating itself that it is refused
        replies += await asyncio.gather(*(call(port, customer, chat(f"{number}/{n}")) for n in range(50)))
    ran = scripts(shared) - before - beats_a_second * (time.monotonic() - began)
    assert {(reply.status, reply.error["code"], reply.headers["x-should-retry"]) for reply in replies} == {
        (429, "insufficient_quota", "false")
    }
    assert ran < 150, f"{ran:.0f} scripts for {len(replies)} calls, beside the beats"  # what is left is the beats' own unevenness
    assert taken_slots(shared.redis_url) == 0
    assert len(standing_engine.journal()["requests"]) == 1
