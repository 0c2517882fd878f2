"""Stripe's events on their way through a gateway and the worker: from a bought page to the record within a second or two."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
import stripe

from billing.checkout import buy_plan, portal
from billing.stripe import open_stripe
from billing.webhooks import TYPES
from gateway.hooks import BODY_MAX, STRIPE_PATH
from gateway.local.ports import free_port
from gateway.settings import Settings, SettingsWrong
from tests.billing.stripe.market import open_market
from tests.commands.test_stripe import environment as environment
from tests.support.gateway import Town, town, wait_for
from tests.support.stripe.running import KEY, running_stripe

SECRET = "whsec_0123456789abcdef"
NO_ENGINE = '[[replica]]\nid = "r"\nmodel = "smollm2-135m-instruct"\nengine = "vllm"\nurl = "http://127.0.0.1:1"\nslots = 1\n'


@pytest.fixture
def here(database_url: str, valkey_url: str, tmp_path: Path) -> Iterator[Town]:
    with town(database_url, valkey_url, tmp_path, NO_ENGINE) as built:
        yield built


def event(**more: Any) -> bytes:
    told = {
        "id": "evt_1", "object": "event", "type": "customer.subscription.updated", "created": int(time.time()), "livemode": False,
        "data": {"object": {"id": "sub_nobodys", "object": "subscription"}}, **more,
    }  # fmt: skip
    return json.dumps(told).encode()


def post(url: str, body: bytes, *, secret: str = SECRET, at: int | None = None) -> httpx2.Response:
    signature = stripe.WebhookSignature.generate_signature_header(body.decode(), secret, at)
    return httpx2.post(url + STRIPE_PATH, content=body, headers={"stripe-signature": signature}, timeout=10)


def rows(database_url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query.encode()).fetchall()


def test_what_was_bought_and_changed_is_in_the_record_at_once(here: Town) -> None:
    port = free_port()
    with running_stripe() as stand_in, open_stripe(KEY, address=stand_in.url) as ours:
        secret = ours.create_endpoint(f"http://127.0.0.1:{port}{STRIPE_PATH}", TYPES)
        settings = {"stripe_key": KEY, "stripe_api_base": stand_in.url, "stripe_webhook_secret": secret}
        here.gateway(port=port, **settings)
        worker = here.worker(**settings)
        with open_market(here.database_url, stand_in, ours) as market:
            account = market.account("ada")
            market.pay(buy_plan(market.shop, "ada", "pro", actor="test"))
            wait_for(lambda: [row["status"] for row in market.subscriptions(account)] == ["active"], 8)
            portal_page = portal(market.shop, "ada", currency="usd", actor="test")
            premium = next(one.id for one in ours.prices("faregate_premium"))
            stand_in.browse(portal_page, action="change", price=premium)
            wait_for(lambda: market.plan(account) == ("active", "premium"))
            wait_for(lambda: all(event["applied_at"] for event in market.events()))
            here.settled_changes()
            assert worker.stop() == 0
            assert {line["event"] for line in worker.lines()} >= {"worker_started", "stripe_swept", "worker_stopped"}
            assert "worker_waits" not in worker.log.read_text()


def test_forged_stale_foreign_and_huge_events_are_refused_and_a_replayed_one_is_stored_once(here: Town) -> None:
    gateway = here.gateway(stripe_key=KEY, stripe_webhook_secret=f"{SECRET}, whsec_its_successor")
    refused = {
        "not that of this body": post(gateway.url, event(), secret="whsec_guessed_at_random"),
        "before or after now": post(gateway.url, event(), at=int(time.time()) - 301),
        "live mode": post(gateway.url, event(livemode=True)),
        "connected account": post(gateway.url, event(account="acct_other")),
        "v2.core.event": post(gateway.url, b'{"object": "v2.core.event"}'),
    }
    for words, answer in refused.items():
        assert answer.status_code == 400
        assert words in answer.json()["error"]["message"]
    assert httpx2.post(gateway.url + STRIPE_PATH, content=event()).status_code == 400
    assert post(gateway.url, b" " * (BODY_MAX + 1)).status_code == 413
    assert httpx2.get(gateway.url + STRIPE_PATH).status_code == 405
    assert rows(here.database_url, "SELECT 1 FROM stripe_events") == []
    for secret in (SECRET, SECRET, "whsec_its_successor"):
        assert post(gateway.url, event(), secret=secret).json() == {"received": True}
    assert post(gateway.url, event(id="evt_2", type="customer.created")).status_code == 200
    assert rows(here.database_url, "SELECT id, payload->>'id' FROM stripe_events") == [("evt_1", "sub_nobodys")]


def test_without_a_secret_there_is_no_such_page(here: Town) -> None:
    """CVE-2026-41432 of new-api: with no secret set, it took whatever was signed with the empty one."""
    gateway = here.gateway(stripe_key=KEY)
    answer = post(gateway.url, event(), secret="whsec_")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_an_event_is_not_taken_while_it_cannot_be_stored(here: Town) -> None:
    gateway = here.gateway(stripe_key=KEY, stripe_webhook_secret=SECRET)
    with psycopg.connect(here.database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE stripe_events RENAME TO away")
        assert post(gateway.url, event()).status_code >= 500
        connection.execute("ALTER TABLE away RENAME TO stripe_events")
    assert post(gateway.url, event()).status_code == 200


@pytest.mark.parametrize("secret", ["", "  ", "whsec_", "secret", f"{SECRET},", f"{SECRET},,{SECRET}"])
def test_an_empty_secret_stops_the_start(environment: pytest.MonkeyPatch, secret: str) -> None:
    environment.setenv("FAREGATE_STRIPE_KEY", KEY)
    environment.setenv("FAREGATE_STRIPE_WEBHOOK_SECRET", secret)
    with pytest.raises(SettingsWrong, match=r"FAREGATE_STRIPE_WEBHOOK_SECRET: .*begins with whsec_"):
        Settings.load()


def test_a_secret_without_a_key_stops_the_start_and_a_file_may_hold_two(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}, whsec_its_successor\n")
    environment.setenv("FAREGATE_STRIPE_WEBHOOK_SECRET_FILE", str(tmp_path / "secret"))
    with pytest.raises(SettingsWrong, match="of no use without FAREGATE_STRIPE_KEY"):
        Settings.load()
    environment.setenv("FAREGATE_STRIPE_KEY", KEY)
    assert Settings.load().webhook_secrets == (SECRET, "whsec_its_successor")
