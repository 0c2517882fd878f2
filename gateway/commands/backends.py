"""`faregate backends`: the replicas at run time, added, drained and removed while calls run."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from redis.exceptions import RedisError

from backends.engines.kinds import ENGINE_KINDS
from backends.states import Event, NotPossible, State
from gateway.commands.record import actor, changing, reading, refused_by, say
from gateway.commands.show import Json, show_json, show_table
from gateway.fleet import record, views
from gateway.fleet.record import Recorded, ReplicaExists, ReplicaNotYours, ReplicaUnknown, ReplicaWrong
from gateway.fleet.views import View
from gateway.settings import Settings
from gateway.worker import redis_client
from models.catalogue import Catalogue

app = typer.Typer(no_args_is_help=True, help="The replicas of the fleet, at run time.")
Id = Annotated[str, typer.Argument(metavar="REPLICA", help="Its id; `faregate backends list` shows them.")]
LOOK_SECONDS = 0.2

Views = Mapping[str, Mapping[str, View]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A replica as the record and all gateways have it; one that no gateway has is gone.

    `well` of the `gateways` that have it know its state and find it well.
    """

    id: str
    state: str
    origin: str
    model: str | None
    url: str | None
    slots: int | None
    running: int
    well: int
    gateways: int
    changed_at: Any


@app.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: Json = False,
) -> None:
    """List the replicas: state, calls that run there, and how many of the gateways find it well."""
    with reading() as connection:
        found = record.recorded(connection)
    told = _told()
    shown = [_shown(one, told) for one in found]
    shown = [one for one in shown if all_ or one.state != State.GONE]
    if as_json:
        show_json([asdict(one) for one in shown])
        return
    columns = ("Id", "State", "From", "Model", "URL", "Slots", "Running", "Well", "Since")
    rows = [
        (one.id, one.state, one.origin, one.model, one.url, one.slots, one.running, f"{one.well}/{one.gateways}", one.changed_at)
        for one in shown
    ]
    show_table(columns, rows)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="REPLICA", help="An id that no other replica has.")],
    model: Annotated[str, typer.Option(help="What it serves, as the catalogue names it.")],
    url: Annotated[str, typer.Option(help="The engine's root, without /v1.")],
    slots: Annotated[int, typer.Option(help="Calls that it is given at once.")],
    engine: Annotated[str, typer.Option(help=f"One of {', '.join(ENGINE_KINDS)}.")] = "vllm",
    context: Annotated[int | None, typer.Option(help="Tokens that one request may have.")] = None,
    engine_model: Annotated[str | None, typer.Option(help="The engine's own name for the model.")] = None,
    api_key_file: Annotated[str | None, typer.Option(help="A file on each gateway, from the fleet file's folder.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="A variable of each gateway's environment.")] = None,
    priority: Annotated[bool, typer.Option("--priority", help="It heeds priorities.")] = False,
    as_json: Json = False,
) -> None:
    """Add a replica. It gets its first call once a gateway has found it well."""
    given = {
        "id": name, "model": Catalogue.load().resolve(model).id, "engine": engine, "url": url, "slots": slots, "context": context,
        "engine_model": engine_model, "api_key_file": api_key_file, "api_key_env": api_key_env, "priority": priority or None,
    }  # fmt: skip
    with refused_by(ReplicaWrong, ReplicaExists), changing() as connection:
        made = record.add(connection, {key: value for key, value in given.items() if value is not None}, actor=actor())
    _tell(made, as_json=as_json)


@app.command()
def drain(
    name: Id,
    wait: Annotated[bool, typer.Option("--wait", help="Return when no call runs there any more.")] = False,
    within: Annotated[float, typer.Option(help="Seconds to wait; exit code 1 when calls still run then.")] = 3600.0,
    as_json: Json = False,
) -> None:
    """Give it no new calls; those that run there finish."""
    drained = _change(name, Event.DRAIN)
    left = _wait_until_empty(drained, within) if wait else None
    _tell(drained, as_json=as_json)
    if left:
        say(f"{left} calls still run on {name}.")
        raise typer.Exit(1)


@app.command()
def undrain(name: Id, as_json: Json = False) -> None:
    """Give a drained replica calls again, once it has been found well."""
    _tell(_change(name, Event.UNDRAIN), as_json=as_json)


@app.command()
def remove(name: Id, as_json: Json = False) -> None:
    """Take a replica that was added out of the fleet; what runs there finishes."""
    _tell(_change(name, Event.LEAVE), as_json=as_json)


def _change(name: str, event: Event) -> Recorded:
    try:
        with refused_by(ReplicaUnknown, ReplicaNotYours), changing() as connection:
            return record.change(connection, name, event, actor=actor())
    except NotPossible as refused:
        say(f"{name}: {refused}.")
        raise typer.Exit(1) from None


def _wait_until_empty(drained: Recorded, seconds: float) -> int:
    """Calls that are left: none, once every gateway has heard of the drain and runs none there."""
    deadline = time.monotonic() + seconds
    while True:
        told = _told()
        left = views.running(told, drained.id)
        behind = views.not_following(told, drained.id, drained.version)
        if not left and not behind:
            return 0
        if time.monotonic() >= deadline:
            if behind:
                say(f"Not heard of it: gateway {', '.join(behind)}.")
            return max(left, 1)
        time.sleep(LOOK_SECONDS)


def _told() -> Views:
    """What the gateways tell. Those of which nothing was heard for a while are left out, and their word is taken away."""
    try:
        return asyncio.run(_hear(Settings.load()))
    except (RedisError, OSError) as error:
        say(f"Valkey can't be reached: {error}.")
        raise typer.Exit(1) from None


async def _hear(settings: Settings) -> Views:
    async with redis_client(settings) as valkey:
        seconds, micros = await valkey.time()
        fields: Any = await valkey.hgetall(views.FLEET_KEY)
        told, gone = views.heard(fields, seconds * 1000 + micros // 1000)
        if gone:
            await valkey.hdel(views.FLEET_KEY, *gone)
        return told


def _shown(one: Recorded, told: Views) -> Shown:
    seen = views.of_replica(told.values(), one.id)
    known = seen[0] if seen else None
    entry = one.entry or {}
    return Shown(
        id=one.id,
        state=one.state if seen or not told else State.GONE,
        origin=one.origin,
        model=known.model if known else entry.get("model"),
        url=known.url if known else entry.get("url"),
        slots=known.slots if known else entry.get("slots"),
        running=sum(view.running for view in seen),
        well=sum(view.is_well and view.version >= one.version for view in seen),
        gateways=len(seen),
        changed_at=one.changed_at,
    )


def _tell(one: Recorded, *, as_json: bool) -> None:
    if as_json:
        show_json({"id": one.id, "state": one.state, "origin": one.origin, "changed_at": one.changed_at})
        return
    typer.echo(f"{one.id}: {one.state}")
