"""A simulated pool from its first call to its last: one drawn from a seed, or a scene that is given."""

import random
from collections.abc import Callable
from dataclasses import replace

from tests.backends.queue.model import PoolModel
from tests.simulation.queue_checks import Checks, at_the_end
from tests.simulation.queue_faults import schedule
from tests.simulation.queue_world import BEGAN, Call, Order, Setting, World, arrivals

GATEWAYS = tuple(f"g{number}" for number in range(10))
Orders = Callable[[PoolModel], Order]


class Broken(Exception):
    """An invariant did not hold; the message has the seed that replays it."""


def alone(model: PoolModel) -> Order:
    return model


def play(seed: int, count: int, order_of: Orders = alone) -> World:
    """`count` calls, in a setting drawn from the seed; `order_of` may add the scripts in lockstep. Raises Broken."""
    setting = Setting.drawn(random.Random(seed))
    return play_scene(seed, setting, arrivals(seed, setting, count), order_of)


def play_scene(seed: int, setting: Setting, calls: list[Call], order_of: Orders = alone) -> World:
    """Raises Broken."""
    model = PoolModel(now=BEGAN, classes=setting.classes)
    world = World(seed, setting, order_of(model), model)
    schedule(world, [replace(call) for call in calls])
    try:
        world.run(Checks())
        at_the_end(world)
    except AssertionError as broken:
        raise Broken(f"seed {seed}, {len(calls)} calls, at {world.time} ms: {broken}") from broken
    return world
