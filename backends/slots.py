"""The scripts that move a pool's slots, and the keys they are given."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the SHA-1 that EVALSHA knows it by."""

    text: str
    sha: str


class Scripts(Protocol):
    """A connection to Valkey that runs scripts; calls of one loop tick leave in the order they were made."""

    def script(self, script: Any, keys: Sequence[str], args: Sequence[str | int], *, lazy: bool = False) -> asyncio.Future[Any]:
        """`script` is a `Script`; of it a connection needs `text` and `sha` alone, so its own type for it will do.

        `lazy`: nobody waits for the answer, so it may leave a moment later, with others, in its order.
        """


@cache
def script_named(name: str) -> Script:
    """`acquire`, `release`, `lease` or `sweep`, with the part that all four share in front."""
    folder = Path(__file__).parent
    text = (folder / "slots.lua").read_text() + (folder / f"{name}.lua").read_text()
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def grants_key(pool: str, gateway: str) -> str:
    """The list that wakes a gateway's waiters: items are `<request> <replica>`."""
    return f"{{p:{pool}}}:grants:{gateway}"


def tombstone_key(pool: str, request: str) -> str:
    return f"{{p:{pool}}}:gone:{request}"


def pool_keys(pool: str, gateways: Sequence[str]) -> list[str]:
    """The keys every script is given, in the order slots.lua names them; one hash tag for a whole pool."""
    shared = [f"{{p:{pool}}}:{part}" for part in ("slots", "n", "wait", "waiting", "caps", "leases")]
    return shared + [grants_key(pool, gateway) for gateway in gateways]
