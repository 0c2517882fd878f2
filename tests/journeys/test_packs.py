"""Beyond the quota a pack pays: exactly what was bought, on any number of gateways, whatever Valkey forgets."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import httpx2
import redis

from billing.packs import bought, packs_of, refunded, set_cap
from billing.plans import QueueTerms
from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.ledger import rows

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
FAILS: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": '@engine {"status": 500}'}]}


def buyer(town: Town, fares: int) -> Customer:
    town.plan("going", quota_per_day=5, queue=QueueTerms(beyond_quota="pack"))
    customer = town.key("going", name="ada")
    buy(town, customer, fares, "pi_1")
    return customer


def buy(town: Town, customer: Customer, fares: int, payment: str) -> None:
    with town.record() as connection:
        bought(
            connection, customer.account_id, fares=fares, amount_cents=500, currency="usd", payment_intent=payment,
            at=datetime.now(UTC),
        )  # fmt: skip


def own(gateway: Running, customer: Customer) -> dict[str, Any]:
    page: dict[str, Any] = httpx2.get(f"{gateway.url}/v1/key", headers=customer.headers).json()
    return page


def left(town: Town, customer: Customer) -> list[int]:
    with town.record() as connection:
        return [pack.left for pack in packs_of(connection, customer.account_id)]


async def test_exactly_what_was_bought_is_let_in_and_each_answer_says_who_paid(faregate: Town) -> None:
    faregate.worker()
    ports = [faregate.gateway().port, faregate.gateway().port]
    ada = buyer(faregate, 7)
    replies = await crowd(ports, ada, CHAT, 20)
    assert Counter(reply.status for reply in replies) == {200: 12, 429: 8}
    lanes = Counter(reply.headers.get("x-faregate-lane") for reply in replies if reply.status == 200)
    assert lanes == {None: 5, "pack": 7}
    last = await call(ports[0], ada, CHAT)
    assert (last.status, last.error["code"], last.headers["x-faregate-pack-remaining"]) == (429, "insufficient_quota", "0")
    assert "buy one to go on at once" in last.error["message"]
    await asyncio.to_thread(wait_for, lambda: left(faregate, ada) == [0])
    assert Counter(row.from_pack for row in rows(faregate.database_url, ada)) == {False: 5, True: 7}
    buy(faregate, ada, 2, "pi_2")
    buy(faregate, ada, 2, "pi_2")  # told twice
    await asyncio.to_thread(faregate.settled_changes)
    more = Counter(reply.status for reply in await crowd(ports, ada, CHAT, 6))
    assert more == {200: 2, 429: 4}


async def test_what_failed_goes_back_and_a_valkey_that_forgot_finds_the_same_pack(faregate: Town) -> None:
    faregate.worker()
    gateway = faregate.gateway()
    ada = buyer(faregate, 4)
    assert {reply.status for reply in await crowd([gateway.port], ada, CHAT, 7)} == {200}
    assert (await call(gateway.port, ada, FAILS)).status >= 500
    await asyncio.to_thread(wait_for, lambda: own(gateway, ada)["packs"]["left"] == 2)  # live: a rebuilt counter hides a fault
    await asyncio.to_thread(wait_for, lambda: left(faregate, ada) == [2])
    with redis.Redis.from_url(faregate.redis_url) as client:
        client.flushall()
    await asyncio.sleep(2.5)  # a shard that forgot takes no calls for a moment
    after = Counter(reply.status for reply in await crowd([gateway.port], ada, CHAT, 6))
    assert after == {200: 2, 429: 4}


async def test_the_customers_own_cap_and_a_refund_hold(faregate: Town) -> None:
    faregate.worker()
    gateway = faregate.gateway()
    ada = buyer(faregate, 50)
    with faregate.record() as connection:
        set_cap(connection, ada.account_id, 3, actor="test")
    await asyncio.to_thread(faregate.settled_changes)
    assert Counter(reply.status for reply in await crowd([gateway.port], ada, CHAT, 12)) == {200: 8, 429: 4}
    capped = await call(gateway.port, ada, CHAT)
    assert "your own cap of 3 a month" in capped.error["message"]
    assert own(gateway, ada)["packs"] == {"left": 47, "used_this_month": 3, "left_this_month": 0}
    await asyncio.to_thread(wait_for, lambda: left(faregate, ada) == [47])
    with faregate.record() as connection:
        assert refunded(connection, "pi_1", datetime.now(UTC))
        set_cap(connection, ada.account_id, None, actor="test")
    await asyncio.to_thread(faregate.settled_changes)
    gone = await call(gateway.port, ada, CHAT)
    assert (gone.status, gone.headers["x-faregate-pack-remaining"]) == (429, "0")
