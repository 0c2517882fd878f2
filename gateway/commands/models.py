"""`faregate models`: what the catalogue has, and which of it the fleet serves."""

import typer

from backends.fleet import Fleet
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from models.catalogue import Catalogue

app = typer.Typer(no_args_is_help=True, help="The catalogue of models.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List all models: tier, fare, context, and whether a replica of the fleet file serves them."""
    settings = Settings.load()
    catalogue = Catalogue.load()
    pools = Fleet.load(settings.fleet_file).pools() if settings.fleet_file else {}
    served = {model.id for model in catalogue.served(pools)}
    if as_json:
        show_json([{**model.model_dump(mode="json"), "served": model.id in served} for model in catalogue.models])
        return
    columns = ("Id", "Tier", "Fare", "Context", "Licence", "Served")
    rows = [(one.id, one.tier, one.fare, one.context, one.licence, one.id in served) for one in catalogue.models]
    show_table(columns, rows)
