"""`faregate subscriptions` and the event commands of `faregate stripe`: from a printed page to what is paid, and back."""

from typing import Any

import psycopg
import pytest
import stripe

from billing.database import open_engine
from billing.purchases import apply_due, end_doubles
from billing.shop import Shop
from billing.stripe import open_stripe
from tests.commands.test_stripe import Run, answer
from tests.commands.test_stripe import client as client
from tests.commands.test_stripe import run as run
from tests.commands.test_stripe import server as server
from tests.commands.test_stripe import stand_in as stand_in
from tests.support.stripe.running import KEY, StandInStripe


@pytest.fixture
def ada(run: Run) -> str:
    """An account, where the plans are on sale."""
    run("stripe sync")
    run("accounts create ada --email ada@example.com")
    return "ada"


def pay(stand_in: StandInStripe, url: str, number: str = "4242424242424242") -> None:
    assert stand_in.browse(url, email="ada@example.com", number=number)[0] == 303


def worker_turns(database_url: str, stand_in: StandInStripe) -> None:
    engine = open_engine(database_url)
    with open_stripe(KEY, address=stand_in.url) as ours:
        shop = Shop(ours, engine, "http://127.0.0.1:1/docs")
        while apply_due(shop):
            pass
        end_doubles(shop)
    engine.dispose()


def shown(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = answer(run("subscriptions show ada --json"))[0]
    return found


def test_a_plan_from_the_printed_page_to_its_end(run: Run, ada: str, stand_in: StandInStripe, database_url: str) -> None:
    assert "None was ever bought" in run("subscriptions show ada").stdout
    url = run("subscriptions checkout ada pro").stdout.strip()
    assert answer(run("subscriptions checkout ada pro --json")) == {"url": url}
    pay(stand_in, url)
    run("stripe sweep")
    worker_turns(database_url, stand_in)
    assert (shown(run)["plan_code"], shown(run)["status"]) == ("pro", "active")
    assert "has a subscription already" in run("subscriptions checkout ada premium", code=1).stderr
    assert answer(run("subscriptions upgrade ada premium --json"))["plan_code"] == "premium"
    assert "not dearer" in run("subscriptions upgrade ada pro", code=1).stderr
    assert answer(run("subscriptions downgrade ada pro --json"))["pending_plan_code"] == "pro"
    assert "pro v1" in run("subscriptions show ada").stdout
    assert answer(run("subscriptions reactivate ada --json"))["pending_plan_code"] is None
    assert answer(run("subscriptions cancel ada --json"))["cancel_at_period_end"] is True
    assert answer(run("subscriptions cancel ada --now --json"))["status"] == "canceled"
    assert "has no subscription" in run("subscriptions cancel ada", code=1).stderr


def test_an_upgrade_whose_card_is_refused_prints_where_to_pay(
    run: Run, ada: str, stand_in: StandInStripe, client: stripe.StripeClient
) -> None:
    pay(stand_in, run("subscriptions checkout ada pro").stdout.strip())
    run("stripe sweep")
    stand_in.steer("card", customer=str(client.v1.customers.list().data[0].id), behaviour="declined")
    waits = run("subscriptions upgrade ada premium").stderr
    assert "waits until this bill is paid" in waits
    assert f"{stand_in.url}/i/" in waits


def test_invoices_are_listed_and_given_back_with_a_reason(run: Run, ada: str, stand_in: StandInStripe, database_url: str) -> None:
    assert answer(run("subscriptions invoices ada --json")) == []
    pay(stand_in, run("subscriptions checkout ada pro").stdout.strip())
    bill = answer(run("subscriptions invoices ada --json"))[0]
    assert (bill["status"], bill["total_cents"], bill["paid_cents"]) == ("paid", 80_00, 80_00)
    assert bill["number"] in run("subscriptions invoices ada").stdout
    assert "8,000 cents" in run(f"subscriptions refund ada {bill['number']} --why outage").stderr
    assert "0 cents can be given back" in run(f"subscriptions refund ada {bill['number']} --why again", code=1).stderr
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT details FROM audit_entries WHERE action = 'invoice.refund'").fetchone()
    assert row is not None
    assert (row[0]["why"], row[0]["cents"], row[0]["left_before"], row[0]["currency"]) == ("outage", 80_00, 80_00, "usd")


def test_packs_are_those_of_the_settings(run: Run, ada: str, stand_in: StandInStripe, database_url: str) -> None:
    assert "There is no pack of 5. Sold are 1,000, 10,000." in run("subscriptions pack ada 5", code=1).stderr
    pay(stand_in, run("subscriptions pack ada 1000").stdout.strip())
    run("stripe sweep")
    worker_turns(database_url, stand_in)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT fares, amount_cents, currency FROM packs").fetchall() == [(1000, 5_00, "usd")]


def test_a_contract_and_the_customers_page(run: Run, ada: str, stand_in: StandInStripe) -> None:
    begun = answer(run("subscriptions contract ada --price-cents 500000 --days-until-due 14 --json"))
    assert (begun["plan_code"], begun["status"], begun["collection_method"]) == ("enterprise", "active", "send_invoice")
    assert "Enterprise" in stand_in.browse(run("subscriptions portal ada").stdout.strip())[1]


def test_events_that_wait_are_shown_and_can_be_replayed(run: Run, ada: str, stand_in: StandInStripe, database_url: str) -> None:
    pay(stand_in, run("subscriptions checkout ada pro").stdout.strip())
    assert "events had not come" in run("stripe sweep").stderr
    waiting = answer(run("stripe status --json"))["events_waiting"]
    assert waiting > 0
    stand_in.steer("trouble", path="/v1/subscriptions/", status=500, count=3)
    worker_turns(database_url, stand_in)
    told = answer(run("stripe status --json"))
    event = told["problems"][0]
    assert "Stripe can't be asked" in event["problem"]
    assert event["id"] in run("stripe status").stdout
    for one in told["problems"]:
        assert "waits for the worker" in run(f"stripe replay {one['id']}").stderr
    worker_turns(database_url, stand_in)
    done = answer(run("stripe status --json"))
    assert (done["events_waiting"], done["events_applied"], done["problems"]) == (0, waiting, [])
    assert "No event 'evt_other' has come" in run("stripe replay evt_other", code=1).stderr


def test_an_endpoint_is_made_for_our_events_alone_and_its_secret_told_once(run: Run, client: stripe.StripeClient) -> None:
    made = answer(run("stripe webhook https://api.example.com/webhooks/stripe --json"))
    endpoint = client.v1.webhook_endpoints.list().data[0]
    assert made["secret"].startswith("whsec_")
    assert (endpoint.url, endpoint.api_version) == ("https://api.example.com/webhooks/stripe", "2026-10-28.endive")
    assert "invoice.paid" in endpoint.enabled_events
    assert "*" not in endpoint.enabled_events
