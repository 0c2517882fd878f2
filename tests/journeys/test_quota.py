"""A quota of N admits exactly N: over two gateways, across a plan change and midnight; each limit says which it is."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from billing.accounts import set_plan
from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call, crowd
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town, wait_for
from tests.support.ledger import rows

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}


def statuses(replies: list[Reply]) -> Counter[int]:
    return Counter(reply.status for reply in replies)


async def test_200_concurrent_calls_on_a_plan_of_60_twice_in_a_row(faregate: Town, engine: StandInEngine) -> None:
    faregate.plan("sixty", quota_per_day=60)
    faregate.worker()
    ports = [faregate.gateway().port, faregate.gateway().port]
    for _ in range(2):
        customer = faregate.key("sixty")
        replies = await crowd(ports, customer, CHAT, 200)
        assert statuses(replies) == {200: 60, 429: 140}
        refused = [reply for reply in replies if reply.status == 429]
        assert {(reply.error["type"], reply.headers["x-should-retry"]) for reply in refused} == {("insufficient_quota", "false")}
        assert not any("retry-after" in reply.headers for reply in refused)
        assert "midnight UTC" in refused[0].error["message"]
        wait_for(lambda customer=customer: len(rows(faregate.database_url, customer)) == 60)
        assert {row.verdict for row in rows(faregate.database_url, customer)} == {"posted"}
    assert len(engine.journal()["requests"]) == 120


async def test_a_plan_change_in_the_middle_of_the_day_keeps_the_count(faregate: Town) -> None:
    faregate.plan("small", quota_per_day=20)
    faregate.plan("large", quota_per_day=50)
    faregate.worker()
    ports = [faregate.gateway().port, faregate.gateway().port]
    customer = faregate.key("small")
    assert statuses(await crowd(ports, customer, CHAT, 60)) == {200: 20, 429: 40}
    with faregate.record() as connection:
        set_plan(connection, customer.account_id, "large", actor="test")
    faregate.settled_changes()
    assert statuses(await crowd(ports, customer, CHAT, 60)) == {200: 30, 429: 30}
    with faregate.record() as connection:
        set_plan(connection, customer.account_id, "small", actor="test")
    faregate.settled_changes()
    assert statuses(await crowd(ports, customer, CHAT, 20)) == {429: 20}


async def test_a_crowd_across_midnight_gets_one_quota_of_each_day(faregate: Town) -> None:
    """The clock of both gateways is moved so that midnight comes while the crowd calls."""
    faregate.plan("sixty", quota_per_day=60)
    customer = faregate.key("sixty")
    for lead_seconds in (8, 20, 50):  # until both are up before midnight, on a machine that may be busy
        now = datetime.now(UTC)
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        offset_ms = int((midnight - now).total_seconds() * 1000) - lead_seconds * 1000
        tomorrow = midnight.timestamp() - offset_ms / 1000
        ports = [faregate.gateway(clock_offset_ms=offset_ms).port, faregate.gateway(clock_offset_ms=offset_ms).port]
        if time.time() < tomorrow - 3:
            break
    replies: list[Reply] = []
    while time.time() < tomorrow + 1.5:
        replies += await crowd(ports, customer, CHAT, 40)
        await asyncio.sleep(0.2)
    assert time.time() > tomorrow
    assert statuses(replies)[200] == 120
    days = Counter(
        datetime.fromtimestamp(int(reply.headers["x-request-id"].replace("-", "")[:12], 16) / 1000, UTC).date()
        for reply in replies
        if reply.status == 200
    )
    assert days == {(midnight - timedelta(days=1)).date(): 60, midnight.date(): 60}


async def test_default_free_limits_say_which_one_and_when(faregate: Town) -> None:
    port, customer = faregate.gateway().port, faregate.key("free")
    replies = await crowd([port], customer, {**CHAT, "messages": [{"role": "user", "content": '@engine {"delay_ms": 300}'}]}, 12)
    codes = Counter(reply.error["code"] for reply in replies if reply.status == 429)
    assert statuses(replies) == {200: 2, 429: 10}
    assert codes["concurrency_limit_exceeded"] == 10
    one_by_one = [await call(port, customer, CHAT) for _ in range(10)]
    assert statuses(one_by_one) == {200: 8, 429: 2}
    last = one_by_one[-1]
    assert last.error["code"] == "rate_limit_exceeded"
    assert "10 requests per minute" in last.error["message"]
    assert 1 <= int(last.headers["retry-after"]) <= 7


async def test_a_key_has_caps_of_its_own(faregate: Town) -> None:
    port, customer = faregate.gateway().port, faregate.key(quota_per_day=3)
    replies = await crowd([port], customer, CHAT, 10)
    assert statuses(replies) == {200: 3, 429: 7}
    assert "this key's own quota" in next(reply for reply in replies if reply.status == 429).error["message"]


async def test_n_answers_cost_n_fares(faregate: Town) -> None:
    faregate.plan("ten", quota_per_day=10)
    port, customer = faregate.gateway().port, faregate.key("ten")
    first = await call(port, customer, {**CHAT, "n": 4})
    assert (first.headers["x-faregate-fare"], first.headers["x-faregate-remaining"]) == ("4", "6")
    assert (await call(port, customer, {**CHAT, "n": 7})).status == 429
    assert (await call(port, customer, {**CHAT, "n": 6})).status == 200


@pytest.mark.parametrize("path", ["/v1/key"])
def test_the_key_page_tells_what_is_left(faregate: Town, path: str) -> None:
    import httpx2

    gateway, customer = faregate.gateway(), faregate.key("free")
    page = httpx2.get(gateway.url + path, headers=customer.headers).json()
    assert (page["plan"]["code"], page["used"], page["remaining"]) == ("free", 0, 60)
    httpx2.post(f"{gateway.url}/v1/chat/completions", json=CHAT, headers=customer.headers)
    page = httpx2.get(gateway.url + path, headers=customer.headers).json()
    assert (page["used"], page["remaining"]) == (1, 59)
    assert page["resets_at"].endswith("T00:00:00Z")
