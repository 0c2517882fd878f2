"""Everything that can happen next when nothing goes wrong (and what heals by itself), one small step at a time."""

from collections.abc import Iterator

from tests.simulation import scripts
from tests.simulation.world import (
    AWAY,
    DEAD,
    HELD,
    NEW,
    OVER,
    POSTED,
    REFUSED,
    UP,
    VOIDED,
    Batch,
    Call,
    Gateway,
    Position,
    Rebuild,
    World,
)

Step = tuple[str, World]


def steps(world: World) -> Iterator[Step]:
    for number in range(len(world.gateways)):
        yield from _gateway_steps(world, number)
    for number in range(len(world.calls)):
        yield from _call_steps(world, number)
    yield from _worker_steps(world)
    yield from _valkey_steps(world)


def _gateway_steps(world: World, number: int) -> Iterator[Step]:
    gateway, memory = world.gateways[number], world.memory
    if gateway.status == AWAY:
        yield f"g{number} is back", world.with_gateway(number, gateway._replace(status=UP))
    if gateway.status != UP and number in memory.leases:
        # Its lease runs out while it says nothing. (Of one that is up it does not: it beats ten times as often.)
        yield f"g{number}'s lease ends", world._replace(memory=memory._replace(leases=memory.leases - {number}))
    if gateway.status != UP:
        return
    if not world.is_open or gateway.nonce != memory.nonce:
        yield f"g{number} follows the epoch", follow(world, number)
        return
    if number not in memory.leases:
        yield f"g{number} renews its lease", scripts.lease(world, number)
    if gateway.rebuild is not None:
        yield f"g{number} seeds", _seed(world, number)
    elif memory.is_ready and not memory.is_warm and _has_new_call(world, number):
        yield f"g{number} reads the stream", _read_stream(world, number)


def follow(world: World, number: int) -> World:
    """Into the present epoch: open holds are put back, ends acknowledged under another nonce are to be sent again."""
    world = scripts.lease(scripts.open_epoch(world), number)
    for call_number, call in enumerate(world.calls):
        if call.gateway != number:
            continue
        if call.stage == HELD:
            world = scripts.put_back(world, call_number)
        elif call.is_kept and call.acked is not None and call.acked[0] != world.memory.nonce:
            world = world.with_call(call_number, call._replace(acked=None))
    return scripts.forget(world, number).with_gateway(number, Gateway(nonce=world.memory.nonce))


def _has_new_call(world: World, number: int) -> bool:
    return any(call.gateway == number and call.stage == NEW for call in world.calls)


def _read_stream(world: World, number: int) -> World:
    stream = world.memory.stream
    firsts = {event.call: event.verdict for event in reversed(stream)}
    posted = frozenset(call for call, verdict in firsts.items() if verdict == POSTED)
    rebuild = Rebuild(world.memory.nonce, stream[-1].id if stream else 0, posted, frozenset(firsts))
    return world.with_gateway(number, world.gateways[number]._replace(rebuild=rebuild))


def _seed(world: World, number: int) -> World:
    rebuild = world.gateways[number].rebuild
    assert rebuild is not None
    known = {call for call in rebuild.seen if world.rows[call] is not None}
    used = world.rows.count(POSTED) + len(rebuild.posted - known)
    if rebuild.nonce == world.memory.nonce:
        world = scripts.seed(world, used, rebuild.last)
    return world.with_gateway(number, world.gateways[number]._replace(rebuild=None))


def _call_steps(world: World, number: int) -> Iterator[Step]:
    call, gateway, memory = world.calls[number], world.owner(number), world.memory
    if call.late_admit:
        yield f"c{number}'s late admit arrives", _late_admit(world, number)
        yield f"c{number}'s late admit never arrives", world.with_call(number, call._replace(late_admit=0))
    if call.stage == HELD and gateway.status in (UP, AWAY):
        over = call._replace(stage=OVER)
        yield f"c{number} is answered", world.with_call(number, over._replace(is_delivered=True, ending=POSTED))
        yield f"c{number} fails", world.with_call(number, over._replace(ending=VOIDED))
    if gateway.status != UP or not world.is_open:
        return
    if may_ask(world, number):
        said, after = scripts.admit(world, number, gateway.nonce)
        stage = HELD if said == "admitted" else REFUSED
        yield f"c{number} admit: {said}", after.with_call(number, after.calls[number]._replace(stage=stage))
    if may_settle(world, number):
        after = scripts.settle(world, number)
        yield f"c{number} settles", after.with_call(number, call._replace(acked=(memory.nonce, after.last_id)))
    if _has_passed(memory.watermark, call):
        yield f"c{number} is let go", world.with_call(number, call._replace(is_kept=False))


def may_ask(world: World, number: int) -> bool:
    """An admit that would be answered by more than `come again`."""
    call, gateway, memory = world.calls[number], world.owner(number), world.memory
    knows = gateway.status == UP and world.is_open and gateway.nonce == memory.nonce
    return knows and call.stage == NEW and memory.is_ready and memory.is_warm and call.gateway in memory.leases


def may_settle(world: World, number: int) -> bool:
    call = world.calls[number]
    return world.owner(number).status == UP and world.is_open and call.is_kept and call.ending is not None and call.acked is None


def _has_passed(watermark: Position, call: Call) -> bool:
    """A watermark without a nonce was written while no epoch was open: it may be of another memory than the acknowledgement."""
    return call.is_kept and call.acked is not None and 0 != call.acked[0] == watermark[0] and call.acked[1] <= watermark[1]


def _late_admit(world: World, number: int) -> World:
    _, world = scripts.admit(world, number, world.calls[number].late_admit)
    return world.with_call(number, world.calls[number]._replace(late_admit=0))


def _worker_steps(world: World) -> Iterator[Step]:
    memory, batch = world.memory, world.worker
    if batch is None:
        start = world.position[1] if world.position[0] == memory.nonce else 0
        events = tuple(event for event in memory.stream if event.id > start)
        if events:
            yield "worker reads", world._replace(worker=Batch(memory.nonce, events[-1].id, events))
        elif memory.stream and not any(gateway.rebuild for gateway in world.gateways):
            # A minute after the commit; a rebuild takes at most three seconds.
            yield "worker trims", world._replace(memory=memory._replace(stream=()))
    elif not batch.is_committed:
        yield "worker commits", commit(world, batch)._replace(worker=batch._replace(is_committed=True, events=()))
    else:
        yield "worker marks", _marked(world, (batch.nonce, batch.last))
    if batch is None and world.position[0] == memory.nonce and world.position != memory.watermark:
        yield "worker marks anew", _marked(world, world.position)


def _marked(world: World, position: Position) -> World:
    return world._replace(memory=world.memory._replace(watermark=position), worker=None)


def commit(world: World, batch: Batch) -> World:
    """Rows, roll-up and position in one transaction; a row that is there stays as it is."""
    rows = list(world.rows)
    for event in batch.events:
        rows[event.call] = rows[event.call] or event.verdict
    world = world._replace(rows=tuple(rows), position=(batch.nonce, batch.last))
    if world.trims_at_once and batch.nonce == world.memory.nonce:
        untold = tuple(event for event in world.memory.stream if event.id > batch.last)
        world = world._replace(memory=world.memory._replace(stream=untold))
    return world


def _valkey_steps(world: World) -> Iterator[Step]:
    memory = world.memory
    if world.unsynced_since is not None:
        crashed = world._replace(memory=world.unsynced_since, unsynced_since=None, run=world.run + 1)
        yield "valkey dies and starts again", crashed
    if not world.is_open:
        return
    have_followed = all(_has_followed(world, number) for number in range(len(world.gateways)))
    if memory.nonce and not memory.is_ready and have_followed:
        yield "the opening second ends", world._replace(memory=memory._replace(is_ready=True))
    for number, _ in memory.holds:
        owner = world.owner(number)
        # A new epoch first gives every gateway a lease's time to come back.
        is_young = owner.status == UP and owner.nonce != memory.nonce
        if world.calls[number].gateway not in memory.leases and not is_young:
            yield f"c{number}'s hold is swept", scripts.sweep(world, number)


def _has_followed(world: World, number: int) -> bool:
    """Those that can be reached have put their holds back and sent their outbox again within the second."""
    gateway = world.gateways[number]
    if gateway.status in (AWAY, DEAD):
        return True
    unsent = any(may_settle(world, n) for n, call in enumerate(world.calls) if call.gateway == number)
    return gateway.nonce == world.memory.nonce and not unsent
