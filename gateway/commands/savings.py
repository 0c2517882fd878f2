"""`faregate usage savings` and `faregate usage what-if`: the flat fare beside prices by the token, whichever is dearer."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import typer

from billing.accounts import find_account
from billing.entitled import plans_at
from billing.money import dollars
from billing.plan_versions import plan_on_offer
from billing.plans import Plan
from billing.savings import Compared, Imagined, compare, what_if
from billing.token_prices import SOURCE, token_prices
from billing.traffic import traffic
from gateway.commands.record import reading
from gateway.commands.show import Json, show_json, show_table
from gateway.settings import Settings
from models.catalogue import Catalogue

Account = Annotated[str, typer.Argument(help="The account's name or id.")]
Days = Annotated[int, typer.Option(min=1, max=400, help="How many days, today included (UTC).")]
Count = Annotated[int, typer.Option(min=1, max=1_000_000_000)]
Tokens = Annotated[int, typer.Option(min=0, max=1_000_000_000, help="Of one call.")]


def savings(account: Account, days: Days = 30, as_json: Json = False) -> None:
    """Show what an account's billed calls would have cost at providers that sell by the token, more or less than its plan."""
    today = datetime.now(UTC).date()
    with reading() as connection:
        found = find_account(connection, account)
        plan = plans_at(connection, datetime.now(UTC), Settings.load().grace_days, [found.id])[found.id].plan
        first = max(today - timedelta(days=days - 1), found.created_at.astimezone(UTC).date())
        carried = traffic(connection, found.id, first, today)
    prices = token_prices((one.model for one in carried), today)
    _show(plan, compare(plan, carried, prices, (today - first).days + 1), today, as_json=as_json)


def what_if_(
    *,
    model: Annotated[str, typer.Option(help="A model of the catalogue.")],
    calls_a_day: Count,
    prompt_tokens: Tokens,
    output_tokens: Tokens,
    cached_tokens: Annotated[int, typer.Option(min=0, help="Prompt tokens of a call that a cache has already.")] = 0,
    plan: Annotated[str, typer.Option(help="The code of a plan.")] = "pro",
    as_json: Json = False,
) -> None:
    """Show what a month of calls that nobody has made yet would cost, by the plan and by the token."""
    today = datetime.now(UTC).date()
    with reading() as connection:
        named = Catalogue.load().resolve(model)
        imagined = Imagined(named.id, named.fare, calls_a_day, prompt_tokens, cached_tokens, output_tokens)
        on = plan_on_offer(connection, plan)
        compared = what_if(on, imagined, token_prices([named.id], today))
    _show(on, compared, today, as_json=as_json)


def _show(plan: Plan, found: Compared, today: date, *, as_json: bool) -> None:
    if as_json:
        show_json(_plain(plan, found, today))
        return
    columns = ("Model", "Calls", "Prompt tokens", "Cached", "Output tokens", "Provider", "Sold there as", "Cost")
    rows = [
        (one.traffic.model, one.traffic.calls, one.traffic.prompt_tokens, one.traffic.cached_tokens,
         one.traffic.completion_tokens, offer.price.provider_name if offer else None, offer.price.sold_as if offer else None,
         dollars(offer.micros) if offer else "unknown")
        for one in found.models
        for offer in one.offers or (None,)
    ]  # fmt: skip
    show_table(columns, rows, empty="Nothing was billed in these days.")
    for line in _words(plan, found):
        typer.echo(line)
    typer.echo(f"Prices: {SOURCE}, those in force on {today}, in US dollars; the providers' own pages have the last word.")


def _words(plan: Plan, found: Compared) -> list[str]:
    if found.flat_micros is None:
        return [f"The price of the {plan.name} plan is agreed with each customer, so that there is nothing to compare."]
    whole = f"{plan.name} for {found.days} day{'' if found.days == 1 else 's'}: {dollars(found.flat_micros)}, used or not."
    if found.flat_a_fare_micros is None or found.flat_compared_micros is None:
        return [whole]
    full = found.flat_a_fare_at_full_use_micros
    a_fare = f"A fare came to {dollars(found.flat_a_fare_micros, digits=6)}"
    if found.used_permille is not None and full is not None:
        used = f"{found.used_permille // 10}.{found.used_permille % 10}%"
        a_fare += f", with {used} of the quota used; to {dollars(full, digits=6)} if all of it were"
    lines = [whole, f"{a_fare}."]
    if found.unknown_fares:
        lines.append(
            f"{found.unknown_fares:,} of {found.fares:,} fares went to models without a price elsewhere: left out below."
        )
    if found.uncounted:
        lines.append(f"{found.uncounted:,} calls have no token counts: they count as 0 tokens elsewhere.")
    if found.unknown_fares < found.fares:
        lines += [_against("cheapest", found.saved_at_least_micros), _against("dearest", found.saved_at_most_micros)]
    return lines


def _against(which: str, saved: int | None) -> str:
    saved = saved or 0
    direction = "the same" if saved == 0 else f"{'cheaper' if saved > 0 else 'dearer'} by {dollars(abs(saved))}"
    return f"Beside the {which} providers, the flat fare is {direction}."


def _plain(plan: Plan, found: Compared, today: date) -> dict[str, Any]:
    names = (
        "days", "fares", "unknown_fares", "uncounted", "used_permille", "flat_micros", "flat_a_fare_micros",
        "flat_a_fare_at_full_use_micros", "flat_compared_micros", "cheapest_micros", "dearest_micros",
        "saved_at_least_micros", "saved_at_most_micros", "models",
    )  # fmt: skip
    head = {"plan": f"{plan.code}@{plan.version}", "currency": "usd", "prices": SOURCE, "prices_of": today}
    return head | {name: getattr(found, name) for name in names}
