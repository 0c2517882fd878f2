"""What was bought is what was used, is left and was taken back: live through faults, after a lost memory, across midnight."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import psycopg
import redis
from redis.asyncio import Redis

from billing.packs import Pack, bought, packs_of, refunded
from billing.plans import QueueTerms
from billing.proofs import Proof
from gateway.clock import DAY_MS
from gateway.limits.shard import SHARDS, Shard, shard_of
from gateway.reconciliation import prove
from tests.journeys.conftest import MODEL
from tests.support.crowd import Reply, call, crowd
from tests.support.gateway import Customer, Town, wait_for
from tests.support.ledger import count, rows

PACKS = QueueTerms(beyond_quota="pack")
CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
FAILING = {**CHAT, "messages": [{"role": "user", "content": '@engine {"status": 400}'}]}


def buy(faregate: Town, customer: Customer, fares: int, payment: str) -> None:
    """The gateways know of it when this returns; the worker must be running."""
    paid: Any = {"amount_cents": 500, "currency": "usd", "payment_intent": payment}
    with faregate.record() as connection:
        assert bought(connection, customer.account_id, fares=fares, at=datetime.now(UTC), **paid)
    faregate.settled_changes()


def packs(faregate: Town, customer: Customer) -> list[Pack]:
    with faregate.record() as connection:
        return packs_of(connection, customer.account_id)


def payers(replies: list[Reply]) -> Counter[str]:
    """Who paid for each call; of one that was refused, its code."""
    return Counter(
        reply.headers.get("x-faregate-lane", "quota") if reply.status == 200 else reply.error["code"] for reply in replies
    )


def in_the_ledger(faregate: Town, customer: Customer, calls: int) -> None:
    wait_for(lambda: len(rows(faregate.database_url, customer)) == calls)


async def proof(faregate: Town) -> Proof:
    async with (
        Redis.from_url(faregate.redis_url) as valkey,
        await psycopg.AsyncConnection.connect(faregate.database_url, autocommit=True) as connection,
    ):
        return await prove(connection, valkey, datetime.now(UTC), shards=SHARDS, is_repairing=False)


async def test_calls_that_failed_gave_back_and_the_nightly_proof_holds_a_packs_counter_against_the_rows(faregate: Town) -> None:
    faregate.plan("packed", quota_per_day=10, queue=PACKS)
    faregate.worker()
    ports, ada = [faregate.gateway().port, faregate.gateway().port], faregate.key("packed")
    assert payers(await crowd(ports, ada, CHAT, 20)) == {"quota": 10, "insufficient_quota": 10}
    buy(faregate, ada, 25, "pi_1")
    assert {reply.status for reply in await crowd(ports, ada, FAILING, 5)} == {400}
    in_the_ledger(faregate, ada, 15)
    first = await call(ports[0], ada, CHAT)
    assert (first.headers["x-faregate-lane"], first.headers["x-faregate-pack-remaining"]) == ("pack", "24")
    assert payers(await crowd(ports, ada, CHAT, 14)) == {"pack": 14}

    with redis.Redis.from_url(faregate.redis_url) as valkey:
        valkey.flushall()
    while (late := await call(ports[1], ada, CHAT)).status == 503:  # a new memory takes calls after a second
        pass
    assert (late.headers["x-faregate-lane"], late.headers["x-faregate-pack-remaining"]) == ("pack", "9")
    assert payers(await crowd(ports, ada, CHAT, 40)) == {"pack": 9, "insufficient_quota": 31}

    in_the_ledger(faregate, ada, 40)
    assert count(faregate.database_url, "SELECT sum(fares) FROM usage_daily") == 10
    assert count(faregate.database_url, "SELECT sum(pack_fares) FROM usage_daily") == 25
    assert [(pack.used, pack.left) for pack in packs(faregate, ada)] == [(25, 0)]
    assert (await proof(faregate)).findings == []
    with redis.Redis.from_url(faregate.redis_url) as valkey:
        valkey.hincrby(Shard(shard_of(str(ada.account_id)), "").account(str(ada.account_id)), "b", -1)
    [found] = (await proof(faregate)).findings
    assert "the live counter of fares of packs" in found.what


async def test_midnight_leaves_packs_as_they_are_and_a_refund_takes_what_is_left_of_its_own(faregate: Town) -> None:
    faregate.plan("packed", quota_per_day=2, queue=PACKS)
    faregate.worker()
    gateway, ada = faregate.gateway(), faregate.key("packed")
    buy(faregate, ada, 5, "pi_1")
    buy(faregate, ada, 4, "pi_2")
    assert payers(await crowd([gateway.port], ada, CHAT, 5)) == {"quota": 2, "pack": 3}
    assert gateway.stop() == 0
    tomorrow = faregate.gateway(clock_offset_ms=DAY_MS)
    assert payers(await crowd([tomorrow.port], ada, CHAT, 4)) == {"quota": 2, "pack": 2}

    in_the_ledger(faregate, ada, 9)
    with faregate.record() as connection:
        assert refunded(connection, "pi_2", datetime.now(UTC))
    faregate.settled_changes()
    assert payers(await crowd([tomorrow.port], ada, CHAT, 3)) == {"insufficient_quota": 3}
    assert [(pack.fares, pack.used, pack.taken_back, pack.left) for pack in packs(faregate, ada)] == [
        (5, 5, None, 0),
        (4, 0, 4, 0),
    ]
