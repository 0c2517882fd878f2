"""The hold protocol, explored: without faults and with every single one here, with every pair by `make sim`."""

from pathlib import Path

import pytest

from tests.simulation import scripts, steps
from tests.simulation.explore import explore
from tests.simulation.faults import ADMIT_REPLY, FLUSHED, ROLLED_BACK
from tests.simulation.judge import COUNTER_WRONG, HOLD_LEFT, OVER_BILLED, ROW_LOST
from tests.simulation.residues import KNOWN, unexpected
from tests.simulation.world import Call, Position, World

PAGE = Path(__file__).parents[2] / "docs/decisions/0001-one-protocol-for-holds.md"
TWO_CALLS = World.of((0, 1), 1)


def test_without_faults_nothing_is_left_over_whatever_the_order() -> None:
    explored = explore(World.of((0, 1, 0), 2), 0)
    assert explored.at_rest > 10
    assert not explored.causes


def test_every_single_fault_leaves_over_what_is_documented_and_nothing_else() -> None:
    explored = explore(TWO_CALLS, 1)
    assert explored.worlds > 10_000
    assert list(unexpected(explored, 1)) == []


def test_every_residue_is_written_down() -> None:
    text = " ".join(PAGE.read_text().split())
    assert [residue.written for residue in KNOWN if residue.written not in text] == []


def without_tombstone(world: World, number: int, verdict: str) -> World:
    after = END(world, number, verdict)
    return after._replace(memory=after.memory._replace(tombs=world.memory.tombs))


def without_opening_second(world: World) -> World:
    opened = OPEN(world)
    return opened._replace(memory=opened.memory._replace(is_ready=True))


def without_sending_again(world: World, number: int) -> World:
    return FOLLOW(world, number)._replace(calls=world.calls)


def without_looking_again(world: World, used: int, _: int) -> World:
    return SEED(world, used, world.last_id)


def nothing(world: World, _: int) -> World:
    return world


def without_asking_for_a_nonce(watermark: Position, call: Call) -> bool:
    return call.is_kept and call.acked is not None and call.acked[0] == watermark[0] and call.acked[1] <= watermark[1]


END, OPEN, FOLLOW, SEED = scripts._end, scripts.open_epoch, steps.follow, scripts.seed
ONE_CALL = World.of((0,), 1)
BROKEN = {
    "tombstones": (scripts, "_end", without_tombstone, TWO_CALLS, [ADMIT_REPLY], HOLD_LEFT),
    "putting open holds back": (scripts, "put_back", nothing, TWO_CALLS, [FLUSHED], OVER_BILLED),
    "the opening second": (scripts, "open_epoch", without_opening_second, TWO_CALLS, [FLUSHED], OVER_BILLED),
    "forgetting older holds": (scripts, "forget", nothing, ONE_CALL, [ROLLED_BACK], HOLD_LEFT),
    "sending ends again": (steps, "follow", without_sending_again, ONE_CALL, [FLUSHED], ROW_LOST),
    "looking again before seeding": (scripts, "seed", without_looking_again, TWO_CALLS, [FLUSHED], COUNTER_WRONG),
    "a watermark's nonce": (steps, "_has_passed", without_asking_for_a_nonce, TWO_CALLS, [FLUSHED, FLUSHED], ROW_LOST),
}


@pytest.mark.parametrize("part", BROKEN)
def test_every_part_of_the_protocol_is_needed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, broken, start, faults, deviation = BROKEN[part]
    monkeypatch.setattr(module, name, broken)
    explored = explore(start, len(faults), faults)
    assert deviation in explored.causes
    assert explored.story(deviation, next(iter(explored.causes[deviation])))
