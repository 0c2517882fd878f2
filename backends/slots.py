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


# What each script is made of.
_PARTS = {
    "try": ("slots", "clock", "try"),
    "lease": ("slots", "clock", "lease"),
    "acquire": ("slots", "clock", "line", "order", "acquire"),
    "release": ("slots", "release", "clock", "line", "order", "pass_on"),
    "keep": ("slots", "clock", "line", "order", "keep"),
    "sweep": ("slots", "clock", "line", "order", "sweep"),
}


@cache
def script_named(name: str) -> Script:
    """`try`, `acquire`, `release`, `keep`, `lease` or `sweep`, put together from its parts."""
    folder = Path(__file__).parent
    text = "".join((folder / f"{part}.lua").read_text() for part in _PARTS[name])
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def grants_key(pool: str, gateway: str) -> str:
    """Where a gateway is spoken to: `grant <request> <replica>` wakes a waiter, `recall <request>` asks for a slot."""
    return f"{{p:{pool}}}:grants:{gateway}"


def tombstone_key(pool: str, request: str) -> str:
    return f"{{p:{pool}}}:gone:{request}"


def pool_keys(pool: str, gateways: Sequence[str]) -> list[str]:
    """The keys of the scripts that move the line, as slots.lua and line.lua name them; one hash tag for a whole pool."""
    more = [f"{{p:{pool}}}:{part}" for part in ("flows", "caps", "credit")]
    return try_keys(pool) + more + [grants_key(pool, gateway) for gateway in gateways]


def try_keys(pool: str) -> list[str]:
    """The keys of the scripts that don't."""
    return [f"{{p:{pool}}}:{part}" for part in ("slots", "n", "work", "index", "waiting", "leases")]
