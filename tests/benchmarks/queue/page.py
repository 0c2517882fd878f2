"""The page of a run, docs/queue-benchmarks.md: tables, pictures and criteria, all from its findings."""

from collections.abc import Mapping, Sequence

from tests.benchmarks.queue.criteria import judged
from tests.benchmarks.queue.figures import ClassFigures, Figures
from tests.benchmarks.queue.findings import Findings
from tests.benchmarks.queue.play import SAMPLE_EVERY_SECONDS
from tests.benchmarks.queue.trace import ACCOUNTS, SHARES, WORDS_MAX, WORDS_MIN

NAMES = {"premium": "Premium", "pro": "Pro", "free": "Free"}


def page(found: Findings, plots: str) -> str:
    """`plots` is the folder of the pictures, as the page links to it."""
    return "\n\n".join(
        (
            "# The queue on a real engine",
            _setting(found),
            "## First come, the engine's priorities, ours",
            _compared(found),
            f"![time to first token by class]({plots}/queue-ttft.png)",
            "## As the load rises",
            _curve(found),
            f"![served, useful tokens and targets by load]({plots}/queue-load.png)",
            "## What it must show",
            _criteria(found),
        )
    ) + "\n"  # fmt: skip


def _setting(found: Findings) -> str:
    setting = found.setting
    capacity = "; ".join(
        f"{policy}: {seen.requests_per_second:.2f} requests/s, {seen.tokens_per_second:.0f} tokens/s, "
        f"{seen.idle_ttft:.2f} s to the first token of a call alone"
        for policy, seen in found.capacity.items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    shares = ", ".join(f"{share}% {NAMES[name]}" for name, share in SHARES.items())
    accounts = ", ".join(f"{count} {NAMES[name]}" for name, count in ACCOUNTS.items())
    return f"""\
`make bench-queue`, run on {found.at[:10]}: {found.machine}; {versions}. The engine's process
that computes has the last core, as it would have a GPU; the rest of the engine (one thread that spins), gateway, worker, Valkey,
PostgreSQL and the client share what is left. So it is in all variants. Machines drift: ours without a reserve and the engine's
own priority were played in turns, twice, and the calls of both times count.

SmolLM2-135M on vLLM, {setting.runs} requests at once, {setting.output_tokens} tokens of output each, prompts of {WORDS_MIN} to
{WORDS_MAX} words that no cache has seen. Poisson arrivals for {setting.arrival_seconds:g} s (seed {setting.seed}), the same for
each variant: {shares}, of {accounts} accounts with no limits of their own. Then what waits is served; what is not over
{setting.drain_seconds:g} s later is cut. Time to first token is from sending a request to the first chunk with content. Useful
tokens are those of whole answers, over all the time to the last one.

Capacity, by {setting.runs} calls in a closed loop, by the engine's policy: {capacity}. A load of 1x is the first of them."""


def _compared(found: Findings) -> str:
    words = f"""\
Twice what the engine can do. The gateway gives it {found.setting.runs + found.setting.line} calls at once and keeps the others;
{found.setting.line} of them stand in the engine's own line, whose last places are kept for Pro and Premium
(docs/capacity.md). The engine is the one with priorities, as in the shipped GPU profile, and Free's cap is off: nobody is
refused, as an engine refuses nobody.
FIFO through the gateway is the calls of one account, before the engine with its own FIFO. Seconds to first token:"""
    return f"{words}\n\n{_compared_table(found)}\n\n{_cost_table(found)}"


def _compared_table(found: Findings) -> str:
    head = ["", *(f"{NAMES[name]}: median, p95" for name in SHARES), "served, refused, cut, failed", "useful tokens/s"]
    rows = [
        [
            found.titles[name],
            *(_ttft(seen.classes[class_]) for class_ in SHARES),
            _outcomes(seen),
            f"{seen.useful_per_second:.1f}",
        ]
        for name, seen in found.compared.items()
    ]
    return _table(head, rows)


def _cost_table(found: Findings) -> str:
    parts = ("engine", "gateway", "stores", "client")
    head = [
        "",
        *(f"{part}: CPU seconds" for part in parts),
        "all seconds",
        "engine ran, kept waiting",
        "cap: mean, lowest",
        "late ms",
    ]
    rows = [
        [
            found.titles[name],
            *(f"{seen.cpu_seconds[part]:.1f}" if part in seen.cpu_seconds else "" for part in parts),
            f"{seen.seconds:.1f}",
            f"{seen.running_mean}, {seen.waiting_mean}",
            "" if seen.cap_mean is None else f"{seen.cap_mean:g}, {seen.cap_lowest}",
            f"{seen.late_ms_p95:.1f}",
        ]
        for name, seen in found.compared.items()
    ]
    note = f"""\
Stores are Valkey, PostgreSQL and the worker. What the engine ran and kept waiting, and the cap (what the gateway gave it at
once), are means of a look every {SAMPLE_EVERY_SECONDS:g} s while calls arrived. Late is the client's own lateness in sending
(95th percentile)."""
    return f"{_table(head, rows)}\n\n{note}"


def _curve(found: Findings) -> str:
    targets = ", ".join(f"{NAMES[name]} {target / 1000:g} s" for name, target in found.setting.targets_ms.items())
    words = f"""\
Ours with the terms that plans begin with: Free's cap on, a wait of 60 s at most. In target is the share of all that arrived whose
first token came within the plan's target ({targets})."""
    head = ["load", *(f"{NAMES[name]}: served, refused, in target" for name in SHARES), "cut, failed", "useful tokens/s"]
    rows = [
        [
            f"{found.loads[name]:g}x",
            *(_share(seen.classes[class_]) for class_ in SHARES),
            _ends(seen),
            f"{seen.useful_per_second:.1f}",
        ]
        for name, seen in found.curve.items()
    ]
    return f"{words}\n\n{_table(head, rows)}"


def _criteria(found: Findings) -> str:
    rows = [
        [one.what, "nothing" if one.seen is None else f"{one.seen:g}", f"{one.bound:g}", "yes" if one.is_met else "**no**"]
        for one in judged(found.compared)
    ]
    return _table(["", "seen", "bound", "met"], rows)


def _ttft(seen: ClassFigures) -> str:
    return "none" if seen.ttft_median is None or seen.ttft_p95 is None else f"{seen.ttft_median:.2f}, {seen.ttft_p95:.2f}"


def _share(seen: ClassFigures) -> str:
    return f"{seen.served}, {seen.refused}, {seen.in_target_percent:.0f}%"


def _outcomes(seen: Figures) -> str:
    return ", ".join(str(_sum(seen.classes, outcome)) for outcome in ("served", "refused", "cut", "failed"))


def _ends(seen: Figures) -> str:
    return ", ".join(str(_sum(seen.classes, outcome)) for outcome in ("cut", "failed"))


def _sum(classes: Mapping[str, ClassFigures], outcome: str) -> int:
    return sum(int(getattr(one, outcome)) for one in classes.values())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
