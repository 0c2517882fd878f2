"""One seed of the simulated pool, from its first call to its last."""

import random
from collections.abc import Callable

from tests.backends.queue.model import PoolModel
from tests.simulation.queue_checks import Checks, at_the_end
from tests.simulation.queue_faults import schedule
from tests.simulation.queue_world import BEGAN, Order, Setting, World, arrivals

GATEWAYS = tuple(f"g{number}" for number in range(10))
Orders = Callable[[PoolModel], Order]


class Broken(Exception):
    """An invariant did not hold; the message has the seed that replays it."""


def play(seed: int, count: int, order_of: Orders = lambda model: model, setting: Setting | None = None) -> World:
    """Raises Broken. `order_of` puts the scripts in lockstep with the model; without it the model plays alone."""
    setting = setting or Setting.drawn(random.Random(seed))
    model = PoolModel(now=BEGAN, classes=setting.classes)
    world = World(seed, setting, order_of(model), model)
    schedule(world, arrivals(seed, setting, count))
    try:
        world.run(Checks())
        at_the_end(world)
    except AssertionError as broken:
        raise Broken(f"seed {seed}, {count} calls, at {world.time} ms: {broken}") from broken
    return world
