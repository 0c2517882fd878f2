"""Everything that can go wrong, at any moment: each gives the worlds that it may lead to."""

from collections.abc import Iterator

from tests.simulation import scripts
from tests.simulation.steps import commit, may_ask, may_settle
from tests.simulation.world import AWAY, DEAD, NEW, OVER, REFUSED, UP, VOIDED, Memory, World

KILLED = "gateway killed"
WENT_AWAY = "gateway frozen or cut off"
ROLLED_BACK = "Valkey killed, last writes lost"
FLUSHED = "Valkey flushed"
# The admit may have been understood, or be still on its way and arrive after its settle.
ADMIT_REPLY = "admit's reply lost"
SETTLE_REPLY = "settle's reply lost"
# The worker killed before its commit is PostgreSQL killed before it; after it, a commit whose answer was lost.
WORKER = "worker or PostgreSQL killed"
ALL = (KILLED, WENT_AWAY, ROLLED_BACK, FLUSHED, ADMIT_REPLY, SETTLE_REPLY, WORKER)


def faults(world: World) -> Iterator[tuple[str, World]]:
    for number, gateway in enumerate(world.gateways):
        if gateway.status != DEAD:
            yield KILLED, _killed(world, number)
        if gateway.status == UP:
            yield WENT_AWAY, world.with_gateway(number, gateway._replace(status=AWAY))
    if world.unsynced_since is None:
        yield ROLLED_BACK, world._replace(unsynced_since=world.memory)
    yield FLUSHED, world._replace(memory=Memory(run=world.run, nonce=0, is_ready=False, counted=0))
    yield from _lost_replies(world)
    if world.worker is not None:
        yield WORKER, world._replace(worker=None)
        if not world.worker.is_committed:
            yield WORKER, commit(world, world.worker)._replace(worker=None)


def _killed(world: World, number: int) -> World:
    """What it knew is gone: open calls, and ends that it had not sent."""
    for call_number, call in enumerate(world.calls):
        if call.gateway == number:
            stage = REFUSED if call.stage == NEW else OVER if call.stage != REFUSED else REFUSED
            world = world.with_call(call_number, call._replace(stage=stage, is_kept=False))
    return world.with_gateway(number, world.gateways[number]._replace(status=DEAD, rebuild=None))


def _lost_replies(world: World) -> Iterator[tuple[str, World]]:
    for number, call in enumerate(world.calls):
        if may_ask(world, number):
            unknown = call._replace(stage=OVER, ending=VOIDED, late_admit=world.memory.nonce)
            yield ADMIT_REPLY, world.with_call(number, unknown)
        if may_settle(world, number):
            yield SETTLE_REPLY, scripts.settle(world, number)
