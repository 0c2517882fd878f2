"""What the scripts cost the server: commands are counted, not time."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from backends.classes import DEFAULT_CLASSES, Classes, ClassRules
from backends.slots import pool_keys, script_named, tombstone_key, try_keys
from tests.backends.queue.gateways import POOL, gateway
from tests.support.services import ValkeyServer

NOW = 1_767_225_600_000  # a clock that stands: nobody has stood long enough to ask for another's slot
TWO = [("one", 2), ("two", 2)]


class Pool:
    """The scripts of a pool as gateway `a` sends them."""

    def __init__(self, client: Any, classes: Classes = DEFAULT_CLASSES, slots: int = 1) -> None:
        self.client, self.classes, self.slots = client, classes, slots
        self.run("lease", try_keys(POOL), [10_000_000])

    def run(self, name: str, keys: list[str], arguments: list[Any]) -> Any:
        return self.client.eval(script_named(name).text, len(keys), *keys, NOW, "a", *arguments)

    def in_line(self, name: str, request: str, arguments: list[Any]) -> Any:
        keys = [*pool_keys(POOL, ("a",)), tombstone_key(POOL, request)]
        return self.run(name, keys, ["a", self.classes.packed, request, *arguments])

    def acquire(self, request: str, account: str, rank: int = 3) -> Any:
        return self.in_line("acquire", request, [rank, account, 100, 0, 0, 100_000, 60_000, 0, "one", self.slots, 0])

    def release(self, request: str) -> Any:
        return self.in_line("release", request, [0, 150])


@pytest.fixture
def client(valkey: ValkeyServer) -> Iterator[Any]:
    with redis.Redis.from_url(valkey.url, decode_responses=True) as found:
        yield found


def commands(client: Any, act: Callable[[], object]) -> Counter[str]:
    client.config_resetstat()
    act()
    return counted(client)


def counted(client: Any) -> Counter[str]:
    found = {name.removeprefix("cmdstat_"): fields["calls"] for name, fields in client.info("commandstats").items()}
    return Counter({name: count for name, count in found.items() if name not in ("eval", "config|resetstat", "info")})


async def test_a_call_that_finds_a_slot_free_costs_the_server_sixteen_commands(valkey: ValkeyServer, client: Any) -> None:
    """The same as when the line knew no order: eight to take it, eight to give it back with what was worked."""
    async with gateway(valkey.url, "a") as a:
        with a.queue.slot(POOL, "warm") as warm:
            assert await warm.try_now(TWO)
        assert await a.queue.releaser.flush(1)
        client.config_resetstat()
        with a.queue.slot(POOL, "r1", "pro", account="x", work_estimate=500) as slot:
            assert await slot.try_now(TWO) == "one"
            slot.worked = 300
        assert await a.queue.releaser.flush(1)
        found = counted(client)
        assert found["evalsha"] == 2
        assert found.total() - 2 <= 16, found


def costs_in_line(client: Any, depth: int, accounts: int) -> dict[str, Counter[str]]:
    client.flushall()
    pool = Pool(client)
    pool.acquire("running", "other")
    for number in range(depth):
        assert pool.acquire(f"r{number}", f"account{number % accounts:04}")[0] == "waits"
    return {
        "to wait": commands(client, lambda: pool.acquire("late", "account0003")),
        "to ask again": commands(client, lambda: pool.acquire("r7", "account0007")),
        "to serve the next": commands(client, lambda: pool.release("running")),
        "to leave the line": commands(client, lambda: pool.release("late")),
    }


def test_the_count_of_commands_does_not_grow_with_the_line(client: Any) -> None:
    short, long = costs_in_line(client, 60, 30), costs_in_line(client, 2000, 30)
    print({act: found.total() for act, found in long.items()})
    assert short == long
    assert long["to serve the next"].total() < 80


def test_the_count_of_commands_does_not_grow_with_the_accounts_that_wait(client: Any) -> None:
    """Those that are near the least are compared, up to a number; those behind them are not looked at."""
    assert costs_in_line(client, 1200, 30) == costs_in_line(client, 1200, 600)


def test_a_slot_that_is_kept_free_makes_no_question_dearer(client: Any) -> None:
    """Each poll looked through all who wait for the slot that none of them may have: five times the time, and with some hundred
    waiters Valkey answered so late that the line was thrown out."""
    without, with_one = (to_ask_again(client, reserved) for reserved in (0, 1))
    assert with_one < without + 15


def to_ask_again(client: Any, reserved: int) -> int:
    client.flushall()
    pool = Pool(client, Classes.of({"premium": ClassRules(reserved=reserved)}), slots=1 + reserved)
    assert pool.acquire("running", "other")[0] == "held"
    for number in range(100):
        assert pool.acquire(f"r{number}", f"account{number % 30:04}")[0] == "waits"
    return commands(client, lambda: pool.acquire("r7", "account0007")).total()
