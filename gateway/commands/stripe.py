"""`faregate stripe`: keep Stripe's products and prices in step with our plans, take its events, and see how things stand."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from billing.catalog_sync import Step, read_catalog, steps_between, take, wanted_of
from billing.changes import audit
from billing.inbox import Backlog, EventUnknown, backlog, replay
from billing.plan_versions import list_plans
from billing.purchases import sweep
from billing.stripe import API_VERSION, Stripe, StripeRefused, StripeUnavailable
from billing.webhooks import TYPES
from gateway.commands.record import actor, changing, reading, say
from gateway.commands.show import Json, show_json, show_table
from gateway.commands.stripe_shop import opened_shop, opened_stripe
from gateway.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Stripe: its products and prices follow the plans.")

_WORDS = {
    "create_product": "new product",
    "update_product": "product renamed, archived or restored",
    "create_price": "new price",
    "archive_price": "price archived; who pays it goes on",
    "restore_price": "price restored",
}


@app.command()
def sync(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False, as_json: Json = False
) -> None:
    """Make what Stripe lacks of the plans, archive what is no longer sold. Subscriptions keep the price that they have."""
    settings = Settings.load()
    with opened_stripe(settings) as stripe:
        steps = _steps(settings, stripe)
        if dry_run:
            _tell([_plain(step) for step in steps], as_json=as_json, done="would be done")
            return
        if steps:
            _write_down(steps, is_live=stripe.is_live)
        made: list[dict[str, Any]] = []
        try:
            for step in steps:
                made.append({**_plain(step), "id": take(stripe, step)})  # noqa: PERF401  # what was made is told, also when a later step fails
        except (StripeRefused, StripeUnavailable):
            if made:  # half-way: the next run does the rest
                _tell(made, as_json=as_json, done="done")
            raise
        _tell(made, as_json=as_json, done="done")


@app.command()
def status(as_json: Json = False) -> None:
    """Show which account is used, whether its catalogue is in step, and what waits. Exit code 1 when it can't be asked."""
    settings = Settings.load()
    with opened_stripe(settings) as stripe:
        account, steps = stripe.account(), _steps(settings, stripe)
    with reading() as connection:
        events = backlog(connection)
    facts: dict[str, Any] = {
        "mode": "live" if stripe.is_live else "test",
        "account": account.id,
        "name": account.name,
        "country": account.country,
        "currency": settings.currency,
        "api_version": API_VERSION,
        "address": settings.stripe_api_base,
        "steps_to_sync": len(steps),
        "webhook_secrets": len(settings.webhook_secrets),
        "events_applied": events.applied,
        "events_waiting": events.waiting,
        "oldest_waiting": events.oldest_waiting,
    }
    if as_json:
        show_json({**facts, "problems": events.stuck})
        return
    show_table(("What", "Value"), [(name.replace("_", " "), value) for name, value in facts.items()])
    _tell_problems(events)


@app.command()
def webhook(
    url: Annotated[str, typer.Argument(help="Where Stripe finds a gateway: https://<host>/webhooks/stripe.")],
    as_json: Json = False,
) -> None:
    """Let Stripe send its events there, and print the secret that signs them: once, for FAREGATE_STRIPE_WEBHOOK_SECRET."""
    settings = Settings.load()
    with opened_stripe(settings) as stripe:
        with changing() as connection:
            audit(connection, "stripe.create_endpoint", actor=actor(), subject=url, details={"live": stripe.is_live})
        secret = stripe.create_endpoint(url, TYPES)
    if as_json:
        show_json({"url": url, "secret": secret})
    else:
        typer.echo(secret)


@app.command("sweep")
def sweep_() -> None:
    """Ask Stripe for everything that happened in thirty days, and take what had not come. The worker does so daily."""
    with opened_shop(Settings.load()) as shop:
        found = sweep(shop, None)
    say(f"{found.events:,} events had not come, and {found.subscriptions:,} subscriptions were not as Stripe has them.")
    if found.lacking:
        say(f"Stripe does not know {', '.join(found.lacking)}; they stay as they are. Is it the key of another account?")


@app.command("replay")
def replay_(event: Annotated[str, typer.Argument(help="Its id, evt_...")]) -> None:
    """Apply an event again, as if it had just come; that does no harm."""
    try:
        with changing() as connection:
            audit(connection, "stripe.replay", actor=actor(), subject=event, details={})
            replay(connection, event, datetime.now(UTC))
    except EventUnknown as unknown:
        say(str(unknown))
        raise typer.Exit(1) from unknown
    say(f"{event} waits for the worker.")


def _steps(settings: Settings, stripe: Stripe) -> list[Step]:
    with reading() as connection:
        versions = list_plans(connection)
    wanted = wanted_of(versions, currency=settings.currency, now=datetime.now(UTC))
    return steps_between(wanted, *read_catalog(stripe, wanted))


def _write_down(steps: list[Step], *, is_live: bool) -> None:
    """Before Stripe is asked, so that no change is there which nobody signed for."""
    with changing() as connection:
        for step in steps:
            details = {**_plain(step), "live": is_live, "replaces": step.target}
            audit(connection, f"stripe.{step.act}", actor=actor(), subject=step.subject, details=details)


def _plain(step: Step) -> dict[str, Any]:
    is_price = step.act.endswith("price")
    amount, currency = (step.wanted.amount_cents, step.wanted.currency) if is_price else (None, None)
    return {"act": step.act, "subject": step.subject, "amount_cents": amount, "currency": currency}


def _tell(steps: list[dict[str, Any]], *, as_json: bool, done: str) -> None:
    if as_json:
        show_json(steps)
        return
    if not steps:
        say("Stripe's products and prices are in step with the plans.")
        return
    rows = [(_WORDS[one["act"]], one["subject"], one["amount_cents"], one["currency"], one.get("id")) for one in steps]
    show_table(("What", "Of", "Cents a month", "Currency", "Id"), rows)
    say(f"{len(steps)} {'step' if len(steps) == 1 else 'steps'} {done}.")


def _tell_problems(events: Backlog) -> None:
    if events.stuck:
        columns = ("Event", "Type", "Made", "Tries", "Next try", "Problem")
        rows = [(one.id, one.type, one.created, one.tries, one.next_try_at, one.problem) for one in events.stuck]
        show_table(columns, rows)
        say("What has no next try waits for `faregate stripe replay`.")
