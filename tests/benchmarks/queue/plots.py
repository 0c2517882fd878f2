"""Pictures of a run: time to first token by class and variant, and what becomes of each class as the load rises."""

from pathlib import Path
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.benchmarks.queue.findings import Findings
from tests.benchmarks.queue.page import NAMES
from tests.benchmarks.queue.trace import SHARES

COLOURS = {"premium": "#7b3294", "pro": "#2c7fb8", "free": "#636363"}


def draw(found: Findings, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _ttft(found, folder / "queue-ttft.png")
    _load(found, folder / "queue-load.png")


def _ttft(found: Findings, path: Path) -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    for step, class_ in enumerate(SHARES):
        seen = [one.classes[class_] for one in found.compared.values()]
        places = [at + (step - 1) * 0.27 for at in range(len(seen))]
        medians = [one.ttft_median or 0.0 for one in seen]
        over = [(one.ttft_p95 or 0.0) - median for one, median in zip(seen, medians, strict=True)]
        axes.bar(places, medians, 0.25, label=NAMES[class_], color=COLOURS[class_])
        axes.errorbar(places, medians, yerr=[[0.0] * len(over), over], fmt="none", ecolor="black", capsize=3, linewidth=1)
    axes.set(yscale="log", ylim=(0.03, 300), ylabel="seconds to first token")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(len(found.compared)), [fill(found.titles[name], 16) for name in found.compared])
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=len(SHARES), loc="upper right")
    figure.suptitle("Median (bar) and 95th percentile (line) at twice the capacity of a real vLLM", fontsize=10)
    figure.savefig(path, dpi=110)


def _load(found: Findings, path: Path) -> None:
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    served, target, tokens = figure.subplots(1, 3)
    loads = [found.loads[name] for name in found.curve]
    for class_ in SHARES:
        seen = [one.classes[class_] for one in found.curve.values()]
        style = {"label": NAMES[class_], "color": COLOURS[class_], "marker": "o"}
        served.plot(loads, [100 * one.served / max(1, one.arrived) for one in seen], **style)
        target.plot(loads, [one.in_target_percent for one in seen], **style)
    tokens.plot(loads, [one.useful_per_second for one in found.curve.values()], color="black", marker="o")
    _finish(served, "served", "% of the class's calls")
    _finish(target, "first token within the target", "% of the class's calls")
    _finish(tokens, "useful tokens", "tokens/s")
    served.legend()
    figure.savefig(path, dpi=110)


def _finish(axes: Axes, title: str, unit: str) -> None:
    axes.set(title=title, xlabel="load, multiples of the capacity", ylabel=unit)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
