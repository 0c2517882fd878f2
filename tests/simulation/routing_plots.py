"""Pictures of simulated routing, for docs/routing.md: hits, spread and time to a first token of each router."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.simulation.routing_world import Run

Found = Mapping[tuple[str, bool], Mapping[str, list[Run]]]
"""By load, and whether accounts' prefixes are apart; then by router."""

OURS, OTHERS = "#2c7fb8", "#969696"


def draw(folder: Path, found: Found) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    grid = figure.subplots(2, 3, sharey=True)
    for row, salted in zip(grid, (False, True), strict=True):
        runs = found["busy", salted]
        walls = "accounts apart" if salted else "prefixes shared"
        _bars(row[0], runs, f"prompt found in the cache ({walls})", [fmean(run.hits for run in each) for each in runs.values()])
        _bars(row[1], runs, "fullest replica, by the mean", [fmean(run.spread for run in each) for each in runs.values()])
        _bars(row[2], runs, "mean seconds to a first token", [_first_token(each) for each in runs.values()], is_log=True)
    figure.suptitle("16 replicas of unequal size with small caches, three going and coming back (simulated)", fontsize=10)
    figure.savefig(folder / "routing-peers.png", dpi=110)


def _first_token(runs: list[Run]) -> float:
    return fmean(run.mean_first_token for run in runs)


def _bars(axes: Axes, runs: Mapping[str, list[Run]], title: str, values: list[float], *, is_log: bool = False) -> None:
    names = list(runs)
    axes.barh(names, values, color=[OURS if name.startswith("ours") else OTHERS for name in names], log=is_log)
    for place, value in enumerate(values):
        axes.text(value, place, f" {value:.2f}", va="center", fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.margins(x=0.15)
    axes.invert_yaxis() if not axes.yaxis_inverted() else None
