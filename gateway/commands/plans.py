"""`faregate plans`: list plans, check what they earn, and add a version of one."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from billing.plan_versions import PlanVersion, add_version, find_version, list_plans
from billing.plans import row_from_plan
from gateway.commands.margin import check, refuse_losses
from gateway.commands.record import actor, changing, reading
from gateway.commands.show import Json, show_json, show_table

app = typer.Typer(no_args_is_help=True, help="Plans: versions are added, never edited; accounts stay on theirs until moved.")

Code = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's code, as in `free`.")]


def _limit(written: str) -> int:
    """A number, or `none`: -1 stands for it until the options are read, since typer takes None for "not given"."""
    if written.lower() == "none":
        return -1
    if not written.isdecimal():
        raise typer.BadParameter(f"{written!r} is neither a whole number nor `none`")
    return int(written)


Limit = Annotated[int | None, typer.Option(parser=_limit, metavar="NUMBER|none")]

app.command()(check)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List every version of every plan."""
    with reading() as connection:
        found = list_plans(connection)
    if as_json:
        show_json([_plain(one) for one in found])
        return
    columns = ("Plan", "Version", "Name", "Cents a month", "A day", "Class", "At once", "A minute", "In effect", "Retired")
    rows = [
        (one.plan.code, one.plan.version, one.plan.name, one.plan.price_cents, one.plan.quota_per_day, one.plan.service_class,
         one.plan.envelope.concurrency, one.plan.envelope.requests_per_minute, one.effective_from, one.retired_at)
        for one in found
    ]  # fmt: skip
    show_table(columns, rows)


@app.command()
def show(
    code: Code,
    version: Annotated[int | None, typer.Option(help="The newest without it.")] = None,
    as_json: Json = False,
) -> None:
    """Show one version of a plan, with everything it allows."""
    with reading() as connection:
        found = find_version(connection, code, version)
    _show(found, as_json=as_json)


@app.command("new-version")
def new_version(
    code: Code,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    price_cents: Limit = None,
    quota_per_day: Limit = None,
    service_class: Annotated[str | None, typer.Option(help="enterprise, premium, pro, free or batch.")] = None,
    tier: Annotated[list[str] | None, typer.Option(help="A tier of models that it opens; several times for several.")] = None,
    input_tokens_max: Limit = None,
    output_tokens_max: Limit = None,
    concurrency: Limit = None,
    requests_per_minute: Limit = None,
    n_max: Annotated[int | None, typer.Option(help="Answers that one request may ask for.")] = None,
    images_max: Annotated[int | None, typer.Option(help="Images in one request.")] = None,
    floor_percent: Annotated[int | None, typer.Option(min=0, help="Of a pool's grants, while its class waits.")] = None,
    reserved_slots: Annotated[int | None, typer.Option(min=0, help="Of a pool, kept free for its class.")] = None,
    share_percent: Annotated[int | None, typer.Option(min=0, help="The most of a pool, while a class above waits.")] = None,
    queue_depth: Limit = None,
    queue_seconds: Limit = None,
    ttft_target_ms: Limit = None,
    beyond_quota: Annotated[str | None, typer.Option(help="refuse; slow: idle GPUs at no fare; pack: what was bought.")] = None,
    effective_from: Annotated[datetime | None, typer.Option(help="UTC; at once without it.")] = None,
    is_accepted: Annotated[bool, typer.Option("--yes", help="Save it, also where its price does not pay for its calls.")] = False,
    as_json: Json = False,
) -> None:
    """Add a version of a plan: the newest one with these changes. `none` takes a limit away, and leaves a price to agreement."""
    given = {
        "name": name,
        "price_cents": price_cents,
        "quota_per_day": quota_per_day,
        "service_class": service_class,
        "tiers": tier or None,
        "input_tokens_max": input_tokens_max,
        "output_tokens_max": output_tokens_max,
        "concurrency": concurrency,
        "requests_per_minute": requests_per_minute,
        "n_max": n_max,
        "images_max": images_max,
        "floor_percent": floor_percent,
        "reserved_slots": reserved_slots,
        "share_percent": share_percent,
        "queue_depth": queue_depth,
        "queue_seconds": queue_seconds,
        "ttft_target_ms": ttft_target_ms,
        "beyond_quota": beyond_quota,
    }
    changes = {column: None if value == -1 else value for column, value in given.items() if value is not None}
    if not changes:
        raise typer.BadParameter("nothing is changed; give at least one option")
    since = None if effective_from is None else effective_from.replace(tzinfo=UTC)
    with changing() as connection:
        made = add_version(connection, code, changes, actor=actor(), effective_from=since)
        before = find_version(connection, code, made.plan.version - 1)
        refuse_losses(connection, before.plan, made.plan, is_accepted=is_accepted)
    _show(made, as_json=as_json)


def _show(version: PlanVersion, *, as_json: bool) -> None:
    plain = _plain(version)
    if as_json:
        show_json(plain)
    else:
        show_table(("What", "Value"), [(name.replace("_", " "), value) for name, value in plain.items()])


def _plain(version: PlanVersion) -> dict[str, Any]:
    return {**row_from_plan(version.plan), "effective_from": version.effective_from, "retired_at": version.retired_at}
