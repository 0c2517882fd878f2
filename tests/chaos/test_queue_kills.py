"""kill -9 of one of two gateways, fifty times, while calls wait: no slot is kept, nothing runs twice, none waits too long."""

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.chaos.conftest import MODEL, Ground
from tests.support.crowd import Reply, call
from tests.support.gateway import Customer, Running, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

KILLS, SLOTS, CLIENTS = 50, 4, 24
LEASE_MS, QUEUE_SECONDS = 1000, 6.0
SETTINGS = {"lease_ms": LEASE_MS, "queue_seconds": QUEUE_SECONDS}


class Crowd:
    """Clients of two classes that ask again and again; each question is asked once, and known by its text."""

    def __init__(self, gateways: list[Running], customers: list[Customer]) -> None:
        self.gateways, self.customers = gateways, customers
        self.replies: list[Reply] = []
        self.numbers: Iterator[int] = itertools.count()
        self.is_over = False

    async def client(self, number: int) -> None:
        customer = self.customers[number % len(self.customers)]
        while not self.is_over:
            script = {"chunks": 5, "pace_ms": 20, "delay_ms": 60, "text": f"q{next(self.numbers)} "}
            content = "@engine " + json.dumps(script)
            body = {"model": MODEL, "stream": number % 2 == 0, "messages": [{"role": "user", "content": content}]}
            self.replies.append(await call(random.choice(self.gateways).port, customer, body))
            if self.replies[-1].status != 200:
                await asyncio.sleep(0.2)


async def test_fifty_kills_under_load(ground: Ground) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    random.seed(seed)
    town = ground.town
    (town.folder / "fleet.toml").write_text(ground.engine.fleet_entry(slots=SLOTS))
    town.plan("low", service_class="free")
    town.plan("high", service_class="premium")
    town.worker(lease_ms=LEASE_MS)
    gateways = [town.gateway(**SETTINGS), town.gateway(**SETTINGS)]
    crowd = Crowd(gateways, [town.key("low"), town.key("low"), town.key("high")])
    clients = [asyncio.create_task(crowd.client(number)) for number in range(CLIENTS)]
    for _ in range(KILLS):
        await asyncio.sleep(random.random())
        victim = random.randrange(2)
        gateways[victim].kill()
        gateways[victim] = await asyncio.to_thread(lambda: town.gateway(**SETTINGS))
    await asyncio.sleep(1)
    crowd.is_over = True
    await asyncio.gather(*clients)
    await asyncio.to_thread(ground.calm)
    await asyncio.to_thread(prove, ground, crowd)


def prove(ground: Ground, crowd: Crowd) -> None:
    wait_for(lambda: not _left_of_the_line(ground), 10)
    journal = ground.engine.journal()
    answered = [reply for reply in crowd.replies if reply.status == 200 and reply.whole]
    waits = [int(reply.headers["x-faregate-queue-ms"]) for reply in crowd.replies if "x-faregate-queue-ms" in reply.headers]
    print(
        json.dumps(
            {"answered": len(answered), "of": len(crowd.replies), "longest_wait_ms": max(waits), "ran": len(journal["requests"])}
        )
    )
    assert len(answered) > 10 * KILLS, "the load never got going"
    assert max(waits) > 50, "nobody ever waited, so this proved nothing"
    assert max(waits) <= QUEUE_SECONDS * 1000 + 500
    assert journal["high_water"] <= SLOTS
    finished = Counter(_question(entry) for entry in journal["requests"] if entry["finished_ns"] is not None)
    assert max(finished.values()) == 1, "a call ran twice"


def _question(entry: dict[str, Any]) -> str:
    return str(entry["body"]["messages"][0]["content"])


def _left_of_the_line(ground: Ground) -> list[object]:
    with redis.Redis.from_url(ground.valkey.url, decode_responses=True) as client:
        kept = [client.hgetall(key) for part in ("slots", "waiting") for key in client.scan_iter(f"{{p:*}}:{part}")]
        return [*kept, *(member for key in client.scan_iter("{p:*}:index") for member in client.zrange(key, 0, -1))]
