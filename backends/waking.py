"""The second, blocking connection on which a gateway hears that its waiters were granted a slot."""

from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

BATCH = 64


class WakesLost(Exception):
    """The blocking connection is gone; waiters find their grants by asking, once a second."""


class Wakes(Protocol):
    async def pop(self, key: str, seconds: float) -> list[str]:
        """The items of the list `key`, as soon as there are any; nothing after `seconds`. Raises `WakesLost`."""

    async def close(self) -> None: ...


class BlockingWakes:
    """BLMPOP on a connection per pool that has waiters (one command can't span two pools' hash tags on a cluster)."""

    def __init__(self, url: str) -> None:
        self._redis = Redis.from_url(url, decode_responses=True, socket_timeout=5, socket_connect_timeout=1)

    async def pop(self, key: str, seconds: float) -> list[str]:
        try:
            found = await self._redis.blmpop(seconds, 1, key, direction="LEFT", count=BATCH)
        except (RedisError, OSError) as failure:
            raise WakesLost from failure
        return [str(item) for item in found[1]] if found else []

    async def close(self) -> None:
        await self._redis.aclose()
