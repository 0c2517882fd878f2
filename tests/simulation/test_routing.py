"""Our routing beside its peers' under a handful of seeds; more, with plots, by `make sim`."""

from collections.abc import Callable
from statistics import fmean

import pytest

from tests.simulation.routing_peers import PEERS, least_loaded, llmd, ours
from tests.simulation.routing_world import Router, Run, play

SEEDS = range(40, 42)
BUSY, OVERFULL = 0.7, 8.0
CALLS = 1500


def runs_of(make: Callable[[], Router], load: float, *, salted: bool) -> list[Run]:
    return [play(make(), seed, calls=CALLS, load=load, salted=salted) for seed in SEEDS]


def told(rows: dict[str, list[Run]]) -> str:
    """With the seeds, for whoever wants to play it again."""
    lines = [f"{name}: hits {hits(runs):.3f}, spread {spread(runs):.2f}, p99 {late(runs):.2f}" for name, runs in rows.items()]
    return "\n".join((f"seeds {SEEDS[0]} to {SEEDS[-1]}, {CALLS} calls each", *lines))


def hits(runs: list[Run]) -> float:
    return fmean(run.hits for run in runs)


def spread(runs: list[Run]) -> float:
    return fmean(run.spread for run in runs)


def late(runs: list[Run]) -> float:
    firsts = sorted(first for run in runs for first in run.first_tokens())
    return firsts[len(firsts) * 99 // 100]


def first_token(runs: list[Run]) -> float:
    return fmean(run.mean_first_token for run in runs)


@pytest.mark.parametrize("salted", [False, True])
def test_nobody_finds_more_in_the_caches_or_spreads_the_load_better(salted: bool) -> None:
    rows = {make().name: runs_of(make, BUSY, salted=salted) for make in PEERS}
    mine = runs_of(ours, BUSY, salted=salted)
    print(told(rows | {"ours": mine}))
    assert all(len(run.calls) == CALLS for run in mine)
    assert hits(mine) >= max(map(hits, rows.values())) - 0.01
    assert spread(mine) <= min(map(spread, rows.values())) + 0.05
    assert first_token(mine) <= min(map(first_token, rows.values()))


def test_where_all_is_full_nobody_waits_long_behind_a_warm_replica() -> None:
    rows = {make().name: runs_of(make, OVERFULL, salted=True) for make in (least_loaded, llmd)}
    mine = runs_of(ours, OVERFULL, salted=True)
    print(told(rows | {"ours": mine}))
    assert late(mine) <= 0.8 * min(map(late, rows.values()))
    assert spread(mine) <= min(map(spread, rows.values()))
    assert hits(mine) > 4 * hits(rows["least loaded"])


def test_gateways_that_know_nothing_of_each_other_still_agree_on_most() -> None:
    alone, two = (runs_of(make, BUSY, salted=False) for make in (ours, lambda: ours(2)))
    assert hits(alone) - 0.08 < hits(two) < hits(alone)
