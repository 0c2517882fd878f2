"""`faregate plans check`, and what a new version of a plan is measured by before it is saved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import typer
from sqlalchemy import Connection

from backends.fleet import Fleet, Replica
from billing.concerns import Concern, concerns, new_concerns
from billing.dearest import Dear, dearest_accounts
from billing.entitled import plans_at
from billing.entitlements import Term
from billing.margin import Assumed, Margin, Pool, Typical, margin, margins, typical
from billing.money import dollars
from billing.plan_versions import PlanLoses, list_plans
from billing.plans import Plan
from billing.pool_use import Balance, PoolUse, balance, pool_use
from billing.worked import Worked, accounts_on_plans, worked
from gateway.commands.record import reading, say
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from models.catalogue import Catalogue

DAYS = 30
# Slots that are busy more than this all day have a line before them; who plans with more says so.
BUSY_PERCENT = 60

Days = Annotated[int, typer.Option(min=1, max=400, help="How many days of the ledger are read, today included (UTC).")]
Busy = Annotated[int, typer.Option(min=1, max=100, help="How much of their time slots are expected to be busy.")]


def check(days: Days = DAYS, busy_percent: Busy = BUSY_PERCENT, as_json: Json = False) -> None:
    """Show what each plan brings and what its calls cost in GPU time, from the ledger and the fleet file's prices."""
    settings = Settings.load()
    with reading() as connection:
        pools = fleet_pools(settings)
        terms = plans_at(connection, datetime.now(UTC), settings.grace_days)
        rows, assumed = _read(connection, pools, terms, days, busy_percent)
        plans = [version.plan for version in list_plans(connection)]
        everybody = accounts_on_plans(terms.values())
    newest = {plan.code: plan for plan in plans}.values()
    current = [plan for plan in plans if plan in newest or everybody.get((plan.code, plan.version))]
    sheets = margins(current, rows, everybody, assumed)
    calls = typical(rows, assumed)
    by_key = {(plan.code, plan.version): plan for plan in plans}
    dear = dearest_accounts(rows, by_key, assumed)
    uses, whole = pool_use(rows, assumed), balance(plans, everybody, pools)
    if as_json:
        show_json(_plain(assumed, sheets, calls) | {"pools": uses, "balance": whole, "dearest_accounts": dear})
        return
    _tell_pools(uses, whole, assumed)
    _tell_plans(sheets)
    _tell_calls(calls, assumed)
    _tell_dearest(dear, assumed)


def refuse_losses(connection: Connection, before: Plan, after: Plan, *, is_accepted: bool) -> None:
    """Says what a change makes worse; nothing where no replica has a price. Raises: PlanLoses, unless that was accepted."""
    settings = Settings.load()
    pools = fleet_pools(settings)
    if not any(pool.cents_per_hour for pool in pools):
        return
    terms = plans_at(connection, datetime.now(UTC), settings.grace_days)
    rows, assumed = _read(connection, pools, terms, DAYS, BUSY_PERCENT)
    found = new_concerns(margin(before, rows, 0, assumed), margin(_as(after, before), rows, 0, assumed))
    if not found:
        return
    words = "; ".join(concern.words for concern in found)
    if not is_accepted:
        raise PlanLoses(
            f"Not saved. With these numbers, {words}. `faregate plans check` has the figures; --yes saves it all the same."
        )
    say(f"Saved, though with these numbers {words}.")


def fleet_pools(settings: Settings) -> list[Pool]:
    """The fleet file's pools with their price; one where a replica's is not said has none."""
    if settings.fleet_file is None:
        return []
    fleet, catalogue = Fleet.load(settings.fleet_file), Catalogue.load()
    shared = [("", model, replicas) for model, replicas in fleet.pools().items()]
    own = [(account, model, replicas) for (account, model), replicas in fleet.dedicated().items()]
    return [_pool(catalogue, account, model, replicas) for account, model, replicas in shared + own]


def _pool(catalogue: Catalogue, account: str, model: str, replicas: Sequence[Replica]) -> Pool:
    prices = [replica.cost_cents_per_hour for replica in replicas]
    whole = None if None in prices else sum(price for price in prices if price is not None)
    named = catalogue.resolve(model)
    return Pool(named.id, named.tier, sum(replica.slots for replica in replicas), whole, account)


def _read(
    connection: Connection, pools: list[Pool], terms: Mapping[UUID, Term], days: int, busy_percent: int
) -> tuple[list[Worked], Assumed]:
    """A ledger that is younger than the days asked for is taken for as many days as it has."""
    today = datetime.now(UTC).date()
    rows = worked(connection, today - timedelta(days=days - 1), today, terms)
    lived = (today - min((row.first_day for row in rows), default=today)).days + 1
    return rows, Assumed(pools, busy_percent, lived)


def _as(after: Plan, before: Plan) -> Plan:
    """The new numbers with the old version's name, whose accounts say what is typical: nobody is on the new one yet."""
    return replace(after, code=before.code, version=before.version)


def _plain(assumed: Assumed, sheets: Sequence[Margin], calls: Sequence[Typical]) -> dict[str, Any]:
    plans = [
        {
            **{name: getattr(sheet, name) for name in sheet.__slots__ if name != "plan"},
            "plan_code": sheet.plan.code,
            "plan_version": sheet.plan.version,
            "price_micros": sheet.price_micros,
            "concerns": concerns(sheet),
        }
        for sheet in sheets
    ]
    return {"days": assumed.days, "busy_percent": assumed.busy_percent, "plans": plans, "calls": calls}


def _tell_pools(uses: Sequence[PoolUse], whole: Balance, assumed: Assumed) -> None:
    typer.echo(f"The fleet, over {_days(assumed)} of the ledger")
    columns = ("Model", "For", "Slots", "Busy", "A slot-hour", "A month")
    rows = [
        (use.pool.model, use.pool.dedicated_to or "everybody", use.pool.slots, _percent(use.busy_permille),
         _money(use.slot_hour_micros, digits=4), _money(use.month_micros))
        for use in uses
    ]  # fmt: skip
    show_table(columns, rows, empty="There is no fleet file, so that nothing has a price.")
    unpriced = sorted({use.pool.model for use in uses if use.month_micros is None})
    if unpriced:
        say(f"No cost_cents_per_hour in the fleet file for all replicas of {', '.join(unpriced)}: their calls count as free.")
    typer.echo(
        f"A month at list prices: {dollars(whole.revenue_micros)} from plans, {dollars(whole.cost_micros)} for the fleet, "
        f"{dollars(whole.left_micros)} left."
    )


def _tell_plans(sheets: Sequence[Margin]) -> None:
    typer.echo("\nPlans: an account's month")
    columns = (
        "Plan",
        "Accounts",
        "Price",
        "Typical",
        "Whole quota",
        "Dearest model",
        "All its slots",
        "Loses above",
        "Fleet takes",
    )
    rows = [
        (f"{sheet.plan.code} v{sheet.plan.version}", sheet.accounts, _money(sheet.price_micros), _money(sheet.typical_micros),
         _money(sheet.full_micros), _money(sheet.dearest_micros), _money(sheet.worst_micros), _loses(sheet), _carries(sheet))
        for sheet in sheets
    ]  # fmt: skip
    show_table(columns, rows)
    typer.echo("Fleet takes: accounts that use what is typical / their whole quota / all their slots at once.")
    for sheet in sheets:
        if sheet.basis == "all":
            say(f"{sheet.plan.code} v{sheet.plan.version}: nobody on it has called; the figures are everybody's calls.")
        _warn(sheet, concerns(sheet))


def _warn(sheet: Margin, found: Sequence[Concern]) -> None:
    for concern in found:
        say(f"{sheet.plan.code} v{sheet.plan.version}: {concern.words}.")


def _tell_calls(calls: Sequence[Typical], assumed: Assumed) -> None:
    typer.echo(f"\nTheir calls, on average, with slots busy {assumed.busy_percent}% of the time")
    columns = ("Plan", "Model", "Calls", "Prompt", "Cached", "Output", "Slot ms", "Cost")
    rows = [
        (f"{one.plan_code} v{one.plan_version}", one.model, one.calls, one.prompt_tokens, one.cached_tokens,
         one.completion_tokens, one.slot_ms, dollars(one.micros_a_call, digits=6))
        for one in calls
    ]  # fmt: skip
    show_table(columns, rows, empty="Nobody called in these days.")


def _tell_dearest(dear: Sequence[Dear], assumed: Assumed) -> None:
    typer.echo(f"\nThe dearest accounts, over {_days(assumed)}")
    columns = ("Account", "Plan", "Calls", "Slot hours", "Cost", "Pays", "Left")
    rows = [
        (one.account, f"{one.plan_code} v{one.plan_version}", one.calls, f"{one.slot_ms / 3_600_000:,.1f}",
         dollars(one.cost_micros), _money(one.paid_micros), _money(one.left_micros))
        for one in dear
    ]  # fmt: skip
    show_table(columns, rows, empty="Nobody called in these days.")


def _money(micros: int | None, *, digits: int = 2) -> str | None:
    return None if micros is None else dollars(micros, digits=digits)


def _days(assumed: Assumed) -> str:
    return f"{assumed.days} day{'' if assumed.days == 1 else 's'}"


def _percent(permille: int) -> str:
    return f"{permille // 10}.{permille % 10}%"


def _loses(sheet: Margin) -> str | None:
    permille = sheet.loses_from_permille
    return None if permille is None else "never" if permille >= 1000 else _percent(permille)


def _carries(sheet: Margin) -> str:
    parts = (sheet.carries_typical, sheet.carries_full, sheet.carries_worst)
    return " / ".join("-" if part is None else f"{part:,}" for part in parts)
