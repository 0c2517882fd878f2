"""The usage events as Valkey has them, before the worker drains them."""

from dataclasses import dataclass
from typing import Any

import orjson
import redis

from tests.support.gateway import Customer


@dataclass(frozen=True, slots=True)
class Settled:
    id: str
    verdict: str
    reason: str
    event: dict[str, Any]


def settled(redis_url: str, customer: Customer | None = None) -> list[Settled]:
    """Every event of every shard, or one customer's."""
    with redis.Redis.from_url(redis_url) as client:
        found = [
            Settled(fields[b"id"].decode(), fields[b"v"].decode(), fields[b"r"].decode(), orjson.loads(fields[b"e"]))
            for key in client.scan_iter("{s*}:ev")
            for _, fields in client.xrange(key)
        ]
    return [event for event in found if customer is None or event.event["account"] == str(customer.account_id)]


def open_holds(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return sum(client.hlen(key) for key in client.scan_iter("{s*}:holds:*"))


def taken_slots(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return sum(client.hlen(key) for key in client.scan_iter("{p:*}:slots"))
