"""What a world at rest must be like (DESIGN promises 2 and 3), and the names of what it may be like instead."""

from collections.abc import Iterator

from tests.simulation.world import DEAD, EXPIRED, NEW, POSTED, VOIDED, World

# Never, whatever happens.
UNDELIVERED_BILLED = "posted without an answer"
ANSWER_VOIDED = "an answer voided"
OVER_BILLED = "more posted than the quota"
COUNTER_WRONG = "a counter that is not the ledger's"
HOLD_LEFT = "a hold left behind"
NEVER_ASKED = "a call that nobody answered"
# Left over, named and counted.
EXPIRED_ANSWER = "an answer expired: its gateway died"
LATE_ANSWER = "an answer expired: settled after the sweep"
ROW_LOST = "an admitted call without a row"
STRAY_EXPIRY = "expired, with its gateway alive"


def deviations(world: World) -> Iterator[str]:
    """Of a world in which nothing can happen any more without a fault."""
    for number, call in enumerate(world.calls):
        row, died = world.rows[number], world.owner(number).status == DEAD
        if call.stage == NEW:
            yield NEVER_ASKED
        if row == POSTED and not call.is_delivered:
            yield UNDELIVERED_BILLED
        if row == VOIDED and call.is_delivered:
            yield ANSWER_VOIDED
        if row == EXPIRED and call.is_delivered:
            yield EXPIRED_ANSWER if died else LATE_ANSWER
        if row == EXPIRED and not call.is_delivered and not died:
            yield STRAY_EXPIRY
        if row is None and (call.was_admitted or call.is_delivered):
            yield ROW_LOST
    if world.rows.count(POSTED) > world.quota:
        yield OVER_BILLED
    if world.memory.is_warm and world.memory.used != world.rows.count(POSTED):
        yield COUNTER_WRONG
    if world.memory.holds:
        yield HOLD_LEFT
