"""Pictures of the two scenes, for docs/queue.md: waits by class, and shares of ten accounts."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.simulation.queue_scenes import hog, in_one_line, played, rush, shares, waits_by_class

SEED = 1
COLOURS = {"premium": "#7b3294", "pro": "#2c7fb8", "free": "#636363"}


def draw(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _waits(folder / "queue-waits.png")
    _shares(folder / "queue-shares.png")


def _waits(path: Path) -> None:
    """How many of each class waited at most so long: first come first served, and in our order without and with a reserve."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    setting, calls = rush(SEED)
    panels = {
        "first come, first served": played(SEED, (setting, in_one_line(calls))),
        "by class": played(SEED, rush(SEED)),
        "by class, 1 slot kept for Premium": played(SEED, rush(SEED, reserved=1)),
    }
    for axes, (title, world) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        asked = calls
        for name, waits in sorted(waits_by_class(world, asked).items(), reverse=True):
            axes.step(
                waits, [(n + 1) / len(waits) for n in range(len(waits))], label=f"{name} ({len(waits)})", color=COLOURS[name]
            )
        axes.set(title=title, xlabel="seconds before the slot", xlim=(-0.5, 31))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)
    figure.suptitle("Calls that were served, 16 slots at twice their capacity (simulated)", fontsize=10)
    figure.savefig(path, dpi=110)


def _shares(path: Path) -> None:
    """Work served to ten accounts of one class, of which one sends twenty times what each other sends."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    setting, calls = hog(SEED)
    left, right = figure.subplots(1, 2, sharey=True)
    _bars(left, "first come, first served", dict(shares(played(SEED, (setting, in_one_line(calls))), calls)))
    _bars(right, "by recent work", dict(shares(played(SEED, (setting, calls)), calls)))
    figure.suptitle("Share of the pool by account, all of them backlogged (simulated)", fontsize=10)
    figure.savefig(path, dpi=110)


def _bars(axes: Axes, title: str, served: dict[str, int]) -> None:
    names, whole = sorted(served), sum(served.values())
    values = [100 * served[name] / whole for name in names]
    axes.bar(names, values, color=["#d95f0e" if name == "heavy" else "#2c7fb8" for name in names])
    axes.set(title=f"{title} (largest / smallest {max(values) / min(values):.2f})", ylabel="% of the work served")
    axes.tick_params(axis="x", rotation=60, labelsize=7)
