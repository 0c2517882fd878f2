"""`faregate plan`: which models fit on which GPUs, how, and for how many at once; the arithmetic shown."""

import re
from dataclasses import asdict
from typing import Annotated, Any

import typer

from backends.gpus import Gpu, find_gpu
from backends.packing import SEQUENCES_MIN, Packed, Wanted, pack
from backends.sizing import GIB, Ask, Fit, KvDtype, fits
from gateway.commands.show import Json, show_json, show_table
from models.catalogue import Catalogue, Model
from models.model import parameter_count
from models.shapes import Shape, Shapes

app = typer.Typer(help="What runs on which GPUs.")
SHORT_TOKENS = 2048


def _machine(written: str) -> tuple[int, Gpu]:
    """Of "8xH200". Raises: GpuUnknown."""
    found = re.fullmatch(r"(?:([1-9][0-9]{0,3})x)?(.+)", written, re.IGNORECASE)
    if found is None:
        raise typer.BadParameter(f"{written!r} is no number of GPUs: write 8xH200", param_hint="--gpus")
    return int(found[1] or 1), find_gpu(found[2])


def _draft(written: str) -> int:
    """Of "1.2B"."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?[MBT]", written):
        raise typer.BadParameter(f"{written!r} is no number of parameters: write 1.2B", param_hint="--draft")
    return parameter_count(written)


@app.callback(invoke_without_command=True)
def plan(
    gpus: Annotated[str, typer.Option(help="Those of one machine, as in 8xH200.")],
    models: Annotated[str, typer.Option(help="Ids or aliases, separated by commas.")],
    context: Annotated[int, typer.Option(min=1, help="Tokens of one call, prompt and output together.")] = 8192,
    kv: Annotated[str, typer.Option(help="What the KV cache is kept in: bf16 or fp8.")] = "bf16",
    draft: Annotated[str | None, typer.Option(metavar="PARAMETERS", help="Of a draft model beside each, as in 1B.")] = None,
    as_json: Json = False,
) -> None:
    """Show each way to serve the models on these GPUs, and a plan for all of them together."""
    count, gpu = _machine(gpus)
    if kv not in ("bf16", "fp8"):
        raise typer.BadParameter(f"{kv!r} is neither bf16 nor fp8", param_hint="--kv")
    dtype: KvDtype = "bf16" if kv == "bf16" else "fp8"
    ask = Ask(kv=dtype, draft_parameters=0 if draft is None else _draft(draft))
    catalogue = Catalogue.load()
    shapes = Shapes.load(catalogue)
    asked = [catalogue.resolve(name.strip()) for name in models.split(",")]
    wanted = {model.id: Wanted(shapes.of(model), shapes.of(model).precisions) for model in asked}
    ways = {name: fits(one.model, gpu, one.precisions, count, ask) for name, one in wanted.items()}
    packed = pack(wanted, gpu, count, context, ask)
    if as_json:
        show_json(_plain(ways, packed, context))
        return
    _show_machine(gpu, count, ask)
    for model in asked:
        _show_model(model, shapes.of(model), ways[model.id], packed, context)
    _show_plan(packed, count, context)


def _show_machine(gpu: Gpu, count: int, ask: Ask) -> None:
    share, usable = ask.utilization_percent / 100, gpu.memory_bytes * ask.utilization_percent // 100
    draft = " and draft" if ask.draft_parameters else ""
    typer.echo(f"{count} x {gpu.name}: {share} x {_gib(gpu.memory_bytes).strip()} = {_gib(usable).strip()} GiB usable on each.")
    typer.echo(f"KV = usable - weights{draft} - rest, GiB of each GPU. The rest is an assumption.")


def _show_model(model: Model, shape: Shape, ways: list[Fit], packed: Packed, context: int) -> None:
    typer.echo(f"\n{model.id}: {(shape.parameters or 0) / 10**9:,.2f} billion parameters.")
    if shape.note:
        typer.echo(shape.note)
    lengths = sorted({SHORT_TOKENS, context, model.context or context})
    columns = ("", "Precision", "GPUs", "Weights", "Rest", "KV", "Tokens", *(f"{tokens:,}".rjust(6) for tokens in lengths))
    placed = packed.placed.get(model.id)
    rows = [
        (
            "*" if placed is not None and placed.fit == way else "", way.precision, way.tensor_parallel,
            _gib(way.weight_bytes + way.draft_bytes), _gib(way.activation_bytes).strip(), _gib(way.cache.budget_bytes),
            way.cache.tokens(context), *(_times(way, tokens) for tokens in lengths),
        )
        for way in ways
    ]  # fmt: skip
    show_table(columns, rows, empty="These GPUs compute in none of its precisions.")


def _show_plan(packed: Packed, count: int, context: int) -> None:
    typer.echo("\nThe plan (* above):")
    columns = ("Model", "Precision", "GPUs a replica", "Replicas", "GPUs", f"Of {context:,} at once")
    show_table(
        columns,
        [
            (name, one.fit.precision, one.fit.tensor_parallel, one.replicas, one.gpus, one.fit.at_once(context) * one.replicas)
            for name, one in packed.placed.items()
        ],
        empty="Nothing fits.",
    )
    for name in packed.left_out:
        typer.echo(f"No room for {name}: it needs more GPUs, or a smaller precision.")
    tight = [name for name, one in packed.placed.items() if one.fit.at_once(context) < SEQUENCES_MIN]
    if tight:
        typer.echo(f"Tight, with room for fewer than {SEQUENCES_MIN} calls at once: {', '.join(tight)}.")
    alone = [name for name, one in packed.placed.items() if one.replicas == 1]
    if alone:
        typer.echo(f"Without a replica to fail over to: {', '.join(alone)}.")
    typer.echo(f"{packed.idle_gpus} of {count} GPUs idle.")


def _times(way: Fit, tokens: int) -> str:
    """As vLLM prints it, where it matters."""
    at_once = way.cache.concurrency(tokens)
    return (f"{at_once:.2f}x" if at_once < 100 else f"{at_once:.0f}x").rjust(6) if way.holds(tokens) else "-".rjust(6)


def _gib(count: int) -> str:
    return f"{count / GIB:6.1f}"


def _plain(ways: dict[str, list[Fit]], packed: Packed, context: int) -> dict[str, Any]:
    return {
        "ways": {name: [_way(way, context) for way in each] for name, each in ways.items()},
        "placed": {
            name: {**_way(one.fit, context), "replicas": one.replicas, "gpus": one.gpus} for name, one in packed.placed.items()
        },
        "left_out": list(packed.left_out),
        "idle_gpus": packed.idle_gpus,
    }


def _way(way: Fit, context: int) -> dict[str, Any]:
    return {**asdict(way), "tokens": way.cache.tokens(context), "at_once": way.at_once(context)}
