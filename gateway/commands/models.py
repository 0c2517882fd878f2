"""`faregate models`: what the catalogue has, from where it is known, and which of it the fleet serves."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from backends.fleet import Fleet
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from models.catalogue import Catalogue, Model
from models.licences import load_licences
from models.sources import load_sources

app = typer.Typer(no_args_is_help=True, help="The catalogue of models.")

# A narrower terminal gets the columns that people choose by: as blocks, eighty models are no list.
WIDE = 136
_COLUMNS = ("Id", "For", "Tier", "Size", "Context", "Served", "Fare", "Popular", "Licence", "May be sold")
_NARROW = ("Id", "For", "Tier", "Size", "Context")


@app.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Also those whose licence an admin has yet to accept.")] = False,
    as_json: Json = False,
) -> None:
    """List the models: what for, tier, size, context, licence, and whether a replica of the fleet file serves them."""
    catalogue, served, hidden = _loaded()
    if as_json:
        show_json([_plain(model, served, hidden) for model in catalogue.models])
        return
    shown = [model for model in catalogue.models if all_ or model.id not in hidden]
    console = Console(highlight=False)
    columns = _NARROW if console.is_terminal and console.width < WIDE else _COLUMNS
    show_table(columns, [[_cells(model, served)[column] for column in columns] for model in shown])
    if len(shown) < len(catalogue.models):
        left = len(catalogue.models) - len(shown)
        typer.echo(f"\n{left} more have licences that forbid selling or are unknown: `faregate models list --all`.", err=True)


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="MODEL", help="Its id or an alias.")], as_json: Json = False) -> None:
    """Show all that is known of one model, and from where."""
    catalogue, served, hidden = _loaded()
    model = catalogue.resolve(name)
    licence = load_licences().get(model.licence or "")
    sources = load_sources()
    if as_json:
        terms = None if licence is None else licence.model_dump(mode="json")
        found = {fact: sources[source].model_dump() for fact, source in model.sources.items()}
        show_json({**_plain(model, served, hidden), "licence_terms": terms, "sources": found})
        return
    rows: list[Sequence[Any]] = [
        (fact.replace("_", " "), value, sources[model.sources[fact]].what if fact in model.sources else None)
        for fact, value in _flat(model).items()
        if value not in (None, ())
    ]
    if licence is not None and licence.conditions:
        rows.append(("conditions", licence.conditions, licence.at))
    rows += [("served", model.id in served, None), ("hidden", model.id in hidden, None)]
    show_table(("What", "Value", "From"), rows)


def _loaded() -> tuple[Catalogue, Collection[str], Collection[str]]:
    """The catalogue, the models that the fleet serves, and those that are hidden. Raises: ModelUnknown, InvalidFleet."""
    settings, catalogue = Settings.load(), Catalogue.load()
    fleet = Fleet.load(settings.fleet_file) if settings.fleet_file else Fleet(())
    hidden = catalogue.hidden(settings.accepted_models)
    served = {model.id for model in catalogue.served(fleet.pools())}
    return catalogue, served - hidden, hidden


def _plain(model: Model, served: Collection[str], hidden: Collection[str]) -> dict[str, Any]:
    return {**model.model_dump(mode="json"), "inputs": model.inputs, "served": model.id in served, "hidden": model.id in hidden}


def _flat(model: Model) -> dict[str, Any]:
    """As `_plain`, with a row for each capability and without the sources."""
    dumped = model.model_dump(exclude={"sources", "capabilities"})
    return {**dumped, "inputs": model.inputs, **model.capabilities.model_dump()}


def _cells(model: Model, served: Collection[str]) -> dict[str, Any]:
    return {
        "Id": model.id,
        "For": model.purpose,
        "Tier": model.tier,
        "Size": _size(model),
        "Context": _tokens(model.context),
        "Served": model.id in served,
        "Fare": model.fare,
        "Popular": model.popular,
        "Licence": model.licence,
        "May be sold": model.commercial_use,
    }


def _size(model: Model) -> str | None:
    """Total, and what is active in a mixture of experts: "671B/37B"."""
    is_mixture = model.active_parameters not in (None, model.parameters)
    return f"{model.parameters}/{model.active_parameters}" if is_mixture else model.parameters


def _tokens(count: int | None) -> str | None:
    """Of 131,072: "128K", as people know them."""
    if count is None or count < 1024 or count % 1024:
        return None if count is None else f"{count:,}"
    return f"{count // 2**20}M" if count % 2**20 == 0 else f"{count // 2**10}K"
