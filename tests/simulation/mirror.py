"""Which of two like gateways is called the first says nothing: of two worlds that mirror each other, one is looked at."""

from tests.simulation.world import NOWHERE, Event, Gateway, Memory, World


def is_mirrored(world: World) -> bool:
    """With one call on each of two gateways, which of them is the first says nothing."""
    if [call.gateway for call in world.calls] != [0, 1]:
        return False
    first, second = (_rank(world, number) for number in (0, 1))
    return second < first


def _rank(world: World, number: int) -> tuple[object, ...]:
    call, gateway, row = world.calls[number], world.gateways[number], world.rows[number]
    return (
        *(call.stage, call.is_delivered, call.ending or "", call.acked or NOWHERE, call.is_kept, call.late_admit),
        *(gateway.status, gateway.nonce, gateway.rebuild is None, row or "", number in world.memory.leases),
    )


def mirrored(world: World) -> World:
    first, second = world.calls
    worker = world.worker
    return world._replace(
        gateways=tuple([_mirrored_gateway(gateway) for gateway in reversed(world.gateways)]),
        calls=(second._replace(gateway=0), first._replace(gateway=1)),
        memory=_mirrored_memory(world.memory),
        rows=world.rows[::-1],
        worker=None if worker is None else worker._replace(events=_mirrored_events(worker.events)),
        unsynced_since=None if world.unsynced_since is None else _mirrored_memory(world.unsynced_since),
    )


def _mirrored_gateway(gateway: Gateway) -> Gateway:
    rebuild = gateway.rebuild
    if rebuild is None:
        return gateway
    posted, seen = (frozenset(1 - call for call in calls) for calls in (rebuild.posted, rebuild.seen))
    return gateway._replace(rebuild=rebuild._replace(posted=posted, seen=seen))


def _mirrored_memory(memory: Memory) -> Memory:
    return memory._replace(
        holds=tuple(sorted((1 - call, nonce) for call, nonce in memory.holds)),
        tombs=frozenset(1 - call for call in memory.tombs),
        stream=_mirrored_events(memory.stream),
        leases=frozenset(1 - gateway for gateway in memory.leases),
    )


def _mirrored_events(events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple([event._replace(call=1 - event.call) for event in events])
