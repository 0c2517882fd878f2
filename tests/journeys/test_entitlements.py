"""What gives an account a plan is in force within a second on every gateway, and ends to the second without a word."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from billing.accounts import set_plan, suspend_account
from billing.checkout import buy_plan
from billing.grants import give, revoke
from billing.stripe import open_stripe
from billing.subscription_changes import cancel
from billing.trials import TrialTerms, start
from tests.billing.stripe.market import Market, open_market
from tests.journeys.conftest import MODEL
from tests.support.gateway import Customer, Running, Town, wait_for
from tests.support.stripe.running import KEY, StandInStripe, running_stripe

CHAT: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
FREE, TRIAL, PRO, PREMIUM = "60", "100", "1000", "5000"
BY: Any = {"actor": "test"}


def somebody(town: Town) -> Customer:
    """On a plan like Free, but for its ten calls a minute."""
    town.plan("base", quota_per_day=60, service_class="free")
    return town.key("base", name="ada")


def awake(town: Town) -> None:
    """A worker that has begun: what is timed later is the news, not its start."""
    town.worker()
    with town.record() as connection:
        set_plan(connection, town.customers[-1].account_id, "base", **BY)
    town.settled_changes()


def quota(gateway: Running, customer: Customer) -> str:
    """What a call's receipt says of the day."""
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=CHAT, headers=customer.headers)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-ratelimit-limit-requests"]


def own(gateway: Running, customer: Customer) -> dict[str, Any]:
    page: dict[str, Any] = httpx2.get(f"{gateway.url}/v1/key", headers=customer.headers).json()
    return page


@pytest.fixture
def stand_in() -> Iterator[StandInStripe]:
    with running_stripe(now=int(time.time())) as running:
        yield running


@pytest.fixture
def market(faregate: Town, stand_in: StandInStripe) -> Iterator[Market]:
    with open_stripe(KEY, address=stand_in.url) as ours, open_market(faregate.database_url, stand_in, ours) as opened:
        yield opened


def test_what_is_bought_changes_the_quota_within_a_second_and_keeps_what_was_used(faregate: Town, market: Market) -> None:
    gateways = [faregate.gateway(), faregate.gateway()]
    ada = somebody(faregate)
    awake(faregate)
    assert [quota(gateway, ada) for gateway in gateways] == [FREE, FREE]
    assert market.pay(buy_plan(market.shop, "ada", "pro", **BY)) == 303
    market.settle()
    for gateway in gateways:
        wait_for(lambda gateway=gateway: quota(gateway, ada) == PRO, 1.0)
    page = own(gateways[0], ada)
    assert (page["plan"]["code"], page["plan"]["source"], page["plan"]["until"]) == ("pro", "subscription", None)
    assert page["used"] == page["limits"]["requests_per_day"] - page["remaining"] >= 4
    cancel(market.shop, "ada", at_once=True, **BY)
    market.settle()
    for gateway in gateways:
        wait_for(lambda gateway=gateway: quota(gateway, ada) == FREE, 1.0)
    assert own(gateways[1], ada)["used"] >= 6


def test_a_trial_ends_to_the_second_on_two_gateways_without_a_word(faregate: Town) -> None:
    """No worker runs: nobody could tell them."""
    gateways = [faregate.gateway(), faregate.gateway()]
    ada = somebody(faregate)
    with faregate.record() as connection:
        begun = start(
            connection, ada.account_id, email="ada@example.org", address="192.0.2.7", terms=TrialTerms(7, 3),
            now=datetime.now(UTC) - timedelta(days=7, seconds=-3), **BY,
        )  # fmt: skip
    assert [quota(gateway, ada) for gateway in gateways] == [TRIAL, TRIAL]
    assert own(gateways[0], ada)["plan"] == {
        "code": "trial", "version": 1, "name": "Trial", "class": "free", "source": "trial",
        "until": begun.ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip
    while (left := (begun.ends_at - datetime.now(UTC)).total_seconds()) > 0.25:
        assert [quota(gateway, ada) for gateway in gateways] == [TRIAL, TRIAL]
        time.sleep(min(0.2, left))
    time.sleep(max(0.0, (begun.ends_at - datetime.now(UTC)).total_seconds()) + 0.05)
    assert [quota(gateway, ada) for gateway in gateways] == [FREE, FREE]


def test_a_grant_is_in_force_within_a_second_and_goes_as_fast_and_suspension_wins(faregate: Town) -> None:
    gateways = [faregate.gateway(), faregate.gateway()]
    ada = somebody(faregate)
    awake(faregate)
    assert [quota(gateway, ada) for gateway in gateways] == [FREE, FREE]
    with faregate.record() as connection:
        given = give(
            connection, ada.account_id, "premium", kind="grant", from_at=datetime.now(UTC), until_at=None, why="an outage", **BY
        )
    for gateway in gateways:
        wait_for(lambda gateway=gateway: quota(gateway, ada) == PREMIUM, 1.0)
    with faregate.record() as connection:
        revoke(connection, given.id, datetime.now(UTC), **BY)
    for gateway in gateways:
        wait_for(lambda gateway=gateway: quota(gateway, ada) == FREE, 1.0)
    with faregate.record() as connection:
        give(connection, ada.account_id, "premium", kind="contract", from_at=datetime.now(UTC), until_at=None, why="agreed", **BY)
        suspend_account(connection, ada.account_id, **BY)
    faregate.settled_changes()
    answer = httpx2.post(f"{gateways[0].url}/v1/chat/completions", json=CHAT, headers=ada.headers)
    assert answer.json()["error"]["code"] == "account_suspended"
