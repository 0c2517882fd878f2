"""Writes what differs between kinds of engine as a table: `python -m backends.engines.page` prints that of docs/engines.md."""

from backends.engines.kind import EngineKind
from backends.engines.kinds import ENGINE_KINDS

_COLUMNS = ("", *ENGINE_KINDS)


def table() -> str:
    kinds = tuple(ENGINE_KINDS.values())
    rows = [
        ("seen with", [kind.seen_with for kind in kinds]),
        ("health, list of models", [f"`{kind.health_path}`, `{kind.models_path}`" for kind in kinds]),
        ("metrics", [f"`{kind.metrics_path}`" if kind.metrics_path else "none" for kind in kinds]),
        ("running, waiting", [_names(kind.gauges.running, kind.gauges.waiting) for kind in kinds]),
        ("KV cache in use", [_names(kind.gauges.kv_use) for kind in kinds]),
        ("took memory away", [_names(kind.gauges.preemptions) for kind in kinds]),
        ("steps: is it stuck?", [_names(kind.gauges.steps) for kind in kinds]),
        ("counts add up by", [_names(kind.gauges.apart) for kind in kinds]),
        ("priority", [_PRIORITY[kind.priority] for kind in kinds]),
        ("fields that it lacks", [_names(*sorted(kind.lacks)) for kind in kinds]),
        ("endpoints that it lacks", [_names(*sorted(kind.lacks_endpoints)) for kind in kinds]),
        ("paid by the token", [_money(kind) for kind in kinds]),
    ]
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *((name, *cells) for name, cells in rows)]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in lines)


_PRIORITY = {None: "none", "lower_first": "lower first", "higher_first": "higher first"}


def _names(*names: str | None) -> str:
    return ", ".join(f"`{name}`" for name in names if name) or "none"


def _money(kind: EngineKind) -> str:
    return "yes, capped" if kind.is_paid_by_token else "no"


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201 - it is what this is for
