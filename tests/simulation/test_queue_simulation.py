"""The order of the line under a handful of seeds; many more by `make sim`."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.backends.queue import order
from tests.backends.queue.lockstep import Lockstep
from tests.backends.queue.model import PoolModel
from tests.simulation.queue_run import GATEWAYS, Broken, play
from tests.simulation.queue_scenes import hog, in_one_line, played, rush, shares, waits_by_class


@pytest.mark.parametrize("seed", range(100, 106))
def test_no_invariant_is_broken(seed: int) -> None:
    world = play(seed, 120)
    assert len(world.calls) == 120
    assert sum(call.how == "served" for call in world.calls) > 20


def test_the_scripts_order_a_simulated_pool_as_the_model_does(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        world = play(104, 60, lambda alone: Lockstep(client, alone, GATEWAYS))
    assert world.steps > 100


def test_twenty_times_the_work_gets_no_larger_share() -> None:
    setting, calls = hog(1)
    fair, fifo = shares(played(1, (setting, calls)), calls), shares(played(1, (setting, in_one_line(calls))), calls)
    assert len(fair) == 10
    assert max(fair.values()) <= 1.25 * min(fair.values())
    assert fifo["heavy"] > 8 * sorted(fifo.values())[4]


def test_at_twice_the_capacity_plans_decide_who_waits() -> None:
    setting, calls = rush(1)
    waits = waits_by_class(played(1, (setting, calls)), calls)
    median = {name: found[len(found) // 2] for name, found in waits.items()}
    assert median["premium"] < 0.2
    assert median["pro"] < 1
    assert median["free"] > 5
    assert len(waits["free"]) > 20, "nobody starves"


def lowest_first(line: order.Line) -> tuple[str, str, bool] | None:
    return next(((*found, False) for rank in reversed(order.RANKS) if (found := line._first_of(rank, 0))), None)


BROKEN: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "caps": (PoolModel, "_room", lambda pool: (dict.fromkeys(pool.caps, 9), 9)),
    "serving those who wait": (PoolModel, "_serve", lambda pool: setattr(pool, "is_served", True)),
    "the floors": (order.Line, "count_turn", lambda line, rank, was_due: None),
    "the order of classes": (order.Line, "next_up", lowest_first),
    "one slot a call": (PoolModel, "_take", lambda pool, *_, **__: None),
}


def some_seeds() -> None:
    for seed in range(20):
        play(seed, 120)


@pytest.mark.parametrize("part", BROKEN)
def test_what_is_broken_is_noticed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, broken = BROKEN[part]
    monkeypatch.setattr(place, name, broken)
    with pytest.raises(Broken):
        some_seeds()
