"""How a command opens the shop: Stripe and the record together; what either refuses is one line and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from billing.checkout import CodeUnknown, NotForSale, PackWrong, SubscribedAlready
from billing.database import open_engine
from billing.shop import Shop
from billing.stripe import Stripe, StripeRefused, StripeUnavailable, open_stripe
from billing.subscription_changes import ContractWrong, InvoiceUnknown, NothingPaid, NotNow, NotSubscribed, WrongDirection
from gateway.commands.record import push_changes, refusals, say
from gateway.settings import Settings

_REFUSALS = (
    CodeUnknown,
    ContractWrong,
    InvoiceUnknown,
    NotForSale,
    NotNow,
    NotSubscribed,
    NothingPaid,
    PackWrong,
    SubscribedAlready,
    WrongDirection,
)


@contextmanager
def opened_stripe(settings: Settings) -> Iterator[Stripe]:
    """Stripe's refusals and outages are one line on stderr and exit code 1."""
    if settings.stripe_key is None:
        say("FAREGATE_STRIPE_KEY is not set; it is the secret key of your Stripe account (docs/stripe.md).")
        raise typer.Exit(1)
    try:
        with open_stripe(settings.stripe_key.get_secret_value(), address=settings.stripe_api_base) as stripe:
            yield stripe
    except StripeUnavailable as outage:
        say(f"Stripe can't be asked now: {outage} Try again; what was done is not done twice.")
        raise typer.Exit(1) from outage
    except StripeRefused as refusal:
        say(f"Stripe refused: {refusal}")
        raise typer.Exit(1) from refusal


@contextmanager
def opened_shop(settings: Settings) -> Iterator[Shop]:
    """What was changed is in Valkey at the end; what a refusal left half done, the worker pushes."""
    engine = open_engine(settings.database_url.get_secret_value())
    try:
        with refusals(), opened_stripe(settings) as stripe:
            yield Shop(stripe, engine, settings.pages_url)
    except _REFUSALS as refusal:
        say(str(refusal))
        raise typer.Exit(1) from refusal
    finally:
        engine.dispose()
    push_changes(settings)
