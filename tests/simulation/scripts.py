"""What the Lua scripts do to the memory, one function each; see docs/decisions/0001-one-protocol-for-holds.md."""

from tests.simulation.world import EXPIRED, POSTED, VOIDED, Event, World


def open_epoch(world: World) -> World:
    memory = world.memory
    if memory.nonce and world.is_open:
        return world
    nonce = world.last_nonce + 1
    return world._replace(memory=memory._replace(run=world.run, nonce=nonce, is_ready=False), last_nonce=nonce)


def lease(world: World, gateway: int) -> World:
    if gateway in world.memory.leases:
        return world
    return world._replace(memory=world.memory._replace(leases=world.memory.leases | {gateway}))


def admit(world: World, number: int, nonce: int) -> tuple[str, World]:
    memory = world.memory
    if memory.nonce != nonce:
        return "epoch", world
    if not memory.is_ready:
        return "opening", world
    if world.calls[number].gateway not in memory.leases:
        return "lease", world
    if memory.hold_of(number) is not None:
        return "admitted", world
    if number in memory.tombs:
        return "settled", world
    if not memory.is_warm:
        return "cold", world
    if memory.used + 1 > world.quota:
        return "quota", world
    memory = memory.with_hold(number, nonce)._replace(used=memory.used + 1)
    world = world.with_call(number, world.calls[number]._replace(was_admitted=True))
    return "admitted", world._replace(memory=memory)


def _end(world: World, number: int, verdict: str) -> World:
    memory = world.memory
    nonce = memory.hold_of(number)
    if nonce is None:
        memory = memory._replace(tombs=memory.tombs | {number})
    else:
        memory = memory.without_hold(number)
        if verdict != POSTED and nonce == memory.counted:
            memory = memory._replace(used=max(0, memory.used - 1))
    event = Event(world.last_id + 1, number, verdict)
    return world._replace(memory=memory._replace(stream=(*memory.stream, event)), last_id=event.id)


def settle(world: World, number: int) -> World:
    return _end(world, number, world.calls[number].ending or VOIDED)


def sweep(world: World, number: int) -> World:
    world = _end(world, number, EXPIRED)
    return world._replace(memory=world.memory._replace(tombs=world.memory.tombs | {number}))


def put_back(world: World, number: int) -> World:
    """assert.lua"""
    memory = world.memory
    if number in memory.tombs or memory.hold_of(number) == memory.nonce:
        return world
    used = memory.used + 1 if memory.is_warm else memory.used
    return world._replace(memory=memory.with_hold(number, memory.nonce)._replace(used=used))


def forget(world: World, gateway: int) -> World:
    """Drops what a gateway holds under another nonce: what it has open was put back, what it ended it tells again."""
    memory = world.memory
    kept = tuple(hold for hold in memory.holds if world.calls[hold[0]].gateway != gateway or hold[1] == memory.nonce)
    return world._replace(memory=memory._replace(holds=kept))


def seed(world: World, used: int, last: int) -> World:
    """Changes nothing when the stream has gone on (the caller reads again) or the counter is warm."""
    memory = world.memory
    if memory.is_warm or any(event.id > last for event in memory.stream):
        return world
    held = sum(nonce == memory.nonce for _, nonce in memory.holds)
    return world._replace(memory=memory._replace(counted=memory.nonce, used=used + held))
