"""What the gate's tests share: gates on one server, asks, and a record to rebuild from."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson
import uuid_utils

from gateway.clock import Clock
from gateway.limits.gate import Ask, Gate
from gateway.limits.policy import Numbers
from gateway.limits.shard import Shard, shard_of
from gateway.valkey import Valkey

ACCOUNT = "0196f0a0-0000-7000-8000-000000000001"
KEY = "0196f0a0-0000-7000-8000-00000000000a"


@dataclass
class Record:
    """A ledger in a few lists: what PostgreSQL would say."""

    version: int = 1
    used: int = 0
    key_used: int = 0
    hangups: int = 0
    pack_used: int = 0
    pack_used_this_month: int = 0
    known: frozenset[str] = frozenset()
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def __call__(self, account: str, key: str, day: int, candidates: Sequence[str]) -> "Record":
        self.asked.append((account, key, day))
        return self


@asynccontextmanager
async def a_gate(
    url: str, source: Any = None, *, gateway: str = "", opening_ms: int = 0, offset_ms: int = 0, lease_ms: int = 5000
) -> AsyncIterator[Gate]:
    valkey = Valkey(url)
    gate = Gate(
        valkey,
        Clock(offset_ms),
        source or Record(),
        gateway=gateway or f"gw-{uuid4().hex[:8]}",
        opening_ms=opening_ms,
        lease_ms=lease_ms,
    )
    await valkey.start()
    await gate.start()
    try:
        yield gate
    finally:
        await gate.close()
        await valkey.close()


def an_ask(
    numbers: Numbers | None = None, *, account: str = ACCOUNT, key: str = KEY, at_ms: int | None = None, **changes: Any
) -> Ask:
    request_id = str(uuid_utils.uuid7() if at_ms is None else uuid_utils.uuid7(nanoseconds=at_ms * 1_000_000))
    values: dict[str, Any] = {"version": 1, "fare": 1, "model": "m", "endpoint": "chat", "stream": False}
    return Ask(request_id, account, key, numbers=numbers or Numbers(), **{**values, **changes})


def event_of(ask: Ask) -> bytes:
    return orjson.dumps({"id": ask.request_id, "account": ask.account, "key": ask.key, "day": ask.day, "fare": ask.fare})


async def serve(gate: Gate, ask: Ask, verdict: str = "posted", reason: str = "answered") -> None:
    """A call without an engine: admitted, and over."""
    with await gate.admit(ask) as hold:
        hold.settle(verdict, reason, event_of(ask))


def shard_at(account: str = ACCOUNT, gateway: str = "any") -> Shard:
    return Shard(shard_of(account), gateway)
