"""The usage events as Valkey has them, before the worker drains them."""

from dataclasses import dataclass
from typing import Any

import orjson
import redis


@dataclass(frozen=True, slots=True)
class Settled:
    id: str
    verdict: str
    reason: str
    event: dict[str, Any]


def settled(redis_url: str) -> list[Settled]:
    """Every event of every shard."""
    with redis.Redis.from_url(redis_url) as client:
        return [
            Settled(fields[b"id"].decode(), fields[b"v"].decode(), fields[b"r"].decode(), orjson.loads(fields[b"e"]))
            for key in client.scan_iter("{s*}:ev")
            for _, fields in client.xrange(key)
        ]


def open_holds(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return sum(client.hlen(key) for key in client.scan_iter("{s*}:holds:*"))


def taken_slots(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return sum(client.hlen(key) for key in client.scan_iter("{p:*}:slots"))
