"""Two scenes to measure: a pool at twice its capacity, and one account that sends twenty times what each of nine others sends."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from backends.classes import CLASSES, DEFAULT_CLASSES, Classes, ClassRules
from tests.simulation.queue_run import play_scene
from tests.simulation.queue_world import Call, Setting, World

RUSH_MS, HOG_MS, SETTLED_MS = 30_000, 40_000, 10_000
# A mean prompt of 500 tokens and a mean answer of 100 hold a slot for about a second.
_POOL = Setting(
    caps={"e0": 16}, gateways=2, load=0, classes=DEFAULT_CLASSES, weights=(), accounts=0,
    depth_max=1000, wait_ms=30_000, faults_per_second=0.0,
)  # fmt: skip


def rush(seed: int, reserved: int = 0) -> tuple[Setting, list[Call]]:
    """10% Premium, 30% Pro, 60% Free, Poisson, at about twice what 16 slots serve; `reserved` for Premium."""
    dice, calls, time = random.Random(seed), list[Call](), 0.0
    classes = Classes.of({"premium": ClassRules(reserved=reserved), "free": ClassRules(floor_percent=5)})
    while (time := time + dice.expovariate(28 / 1000)) < RUSH_MS:
        rank = dice.choices((1, 2, 3), (10, 30, 60))[0]
        calls.append(_call(len(calls), rank, f"{CLASSES[rank]}-{dice.randrange(8)}", time, dice))
    return replace(_POOL, classes=classes), calls


def hog(seed: int) -> tuple[Setting, list[Call]]:
    """Ten accounts of one class, each wanting about twice its share of four slots; the first wants twenty times that."""
    dice, calls = random.Random(seed), list[Call]()
    for account, per_second in [("heavy", 14.0), *((f"light{n}", 0.7) for n in range(9))]:
        time = 0.0
        while (time := time + dice.expovariate(per_second / 1000)) < HOG_MS:
            calls.append(_call(len(calls), 2, account, time, dice))
    return replace(_POOL, caps={"e0": 4}, wait_ms=20_000), sorted(calls, key=lambda call: call.arrived)


def in_one_line(calls: Iterable[Call]) -> list[Call]:
    """The same calls, first come first served: to the pool they are all of one class and one account."""
    return [replace(call, rank=2, account="all") for call in calls]


def waits_by_class(world: World, asked: Iterable[Call]) -> dict[str, list[float]]:
    """Seconds before the slot, of the calls that were served; classes as they were asked for."""
    rank_of = {call.request: call.rank for call in asked}
    waits = defaultdict(list)
    for call in world.calls:
        if call.how == "served":
            waits[CLASSES[rank_of[call.request]]].append(call.waited / 1000)
    return {name: sorted(found) for name, found in waits.items()}


def shares(world: World, asked: Iterable[Call]) -> Counter[str]:
    """Work served to each account while all of them waited."""
    account_of = {call.request: call.account for call in asked}
    served: Counter[str] = Counter()
    for call in world.calls:
        if call.how == "served" and SETTLED_MS < call.ended < HOG_MS:
            served[account_of[call.request]] += call.prompt + 2 * call.output
    return served


def played(seed: int, scene: tuple[Setting, list[Call]]) -> World:
    setting, calls = scene
    return play_scene(seed, setting, calls)


def _call(number: int, rank: int, account: str, time: float, dice: random.Random) -> Call:
    prompt, output = int(min(8_000, 200 * dice.paretovariate(1.6))), 1 + int(dice.expovariate(1 / 100))
    return Call(f"r{number:05}", rank, account, "", prompt, output, int(time), estimate=prompt + 200)
