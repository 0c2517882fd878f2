"""What goes wrong in the simulated pool, and when."""

import random

from tests.simulation.queue_world import LEASE_MS, Call, State, World


def strike(world: World) -> None:
    """One fault, drawn; what breaks is mended some seconds later."""
    dice = world.dice
    dice.choice((_kill_gateway, _break_engine, _break_engine, _jump, _forget))(world, dice)


def schedule(world: World, calls: list[Call]) -> None:
    """The arrivals, the callers that hang up, and the faults in between."""
    dice, last = world.dice, calls[-1].arrived
    world.expected = len(calls)
    for call in calls:
        world.at(call.arrived, world.arrive, call)
        if dice.random() < 0.05:
            world.at(call.arrived + dice.randint(1, 5000), world.hang_up, call)
    for _ in range(int(last / 1000 * world.setting.faults_per_second)):
        world.at(dice.randrange(last), strike, world)


def _kill_gateway(world: World, dice: random.Random) -> None:
    living = [gateway for gateway in world.gateways if gateway.is_alive]
    if len(living) > 1 and len(world.gateways) < 10:
        world.kill(dice.choice(living))
        world.at(world.time + dice.randint(500, 8000), world.add_gateway)


def _break_engine(world: World, dice: random.Random) -> None:
    name = dice.choice(sorted(world.setting.caps))
    if name in world.broken:
        return
    world.broken.add(name)
    for gateway in world.gateways:
        for call in list(gateway.running.values()):
            if call.replica == name:
                world._leave(call, "engine died", worked=0)
    world.at(world.time + dice.randint(200, 4000), world.broken.discard, name)


def _jump(world: World, dice: random.Random) -> None:
    """The server's clock is set: forward over all leases, a little, or back."""
    ms = dice.choice((300, 2 * LEASE_MS, -400))
    world.skew += ms
    world.model.is_served = False
    if ms > LEASE_MS:
        _excuse(world)


def _forget(world: World, dice: random.Random) -> None:
    world.order.forget()
    _excuse(world)


def _excuse(world: World) -> None:
    """Calls that run now are unknown to the pool until their gateways have swept; until then others may get their slots."""
    world.disturbed_at = world.time
    world.excused |= {call for call in world.calls if call.state is State.RUNS}
