"""What people do in the console, in a real browser, with a picture of every page on the way."""

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import insert

from billing.tables import usage_daily
from tests.console.conftest import MODEL, PASSWORD, Person
from tests.support.gateway import Town

pytestmark = pytest.mark.browser


def sign_in(page: Page, house: Town, person: Person) -> None:
    page.goto(house.gateway().url + "/sign-in")
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def a_month_of_use(house: Town, person: Person) -> None:
    """Of roll-ups: what a page of an account that is used looks like."""
    chance, today = random.Random(7), datetime.now(UTC).date()
    customer = person.customer
    assert customer is not None
    rows: list[dict[str, Any]] = []
    for back in range(1, 30):
        for model, share in ((MODEL, 1.0), ("qwen3-8b", 0.4)):
            posted = int(share * chance.randint(120, 700) * (0.3 if (today - timedelta(days=back)).weekday() > 4 else 1))
            rows.append(
                {
                    "account_id": customer.account_id, "day": today - timedelta(days=back), "key_id": customer.key_id,
                    "model": model, "fares": posted, "posted": posted, "voided": posted // 19, "expired": 0, "hangups": 1,
                    "prompt_tokens": posted * 912, "cached_tokens": posted * 400, "completion_tokens": posted * 187,
                }
            )  # fmt: skip
    with house.record() as connection:
        connection.execute(insert(usage_daily), rows)


def test_a_developer_makes_a_key_calls_and_finds_the_receipt(
    page: Page, house: Town, person: Callable[..., Person], shots: Callable[[str], None]
) -> None:
    who = person(customer=house.key("pro", name="Harbour Labs"))
    page.goto(house.gateway().url)
    expect(page.get_by_role("heading", level=1)).to_contain_text("One fare per request")
    shots("front")
    page.get_by_role("link", name="Sign in").click()
    shots("sign-in")
    sign_in(page, house, who)
    expect(page.get_by_role("heading", name="Your first call")).to_be_visible()
    shots("overview-new")
    page.get_by_role("navigation").get_by_role("link", name="Keys").click()
    page.get_by_label("Name").fill("staging")
    page.get_by_role("button", name="Make key").click()
    token = page.locator("#made").inner_text()
    assert re.fullmatch(r"fare_live_\w+", token)
    shots("keys-made")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx2.post(
        f"{house.gateway().url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {token}"}, timeout=20
    )
    assert answer.status_code == 200
    a_month_of_use(house, who)
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("dd").first).to_contain_text("999")
    shots("overview")
    page.get_by_role("link", name="Usage").click()
    shots("usage")
    page.get_by_role("navigation").get_by_role("link", name="Requests").click()
    expect(page.locator("tbody time").first).not_to_contain_text("UTC")
    shots("requests")
    page.get_by_role("link", name=re.compile("Receipt of")).first.click()
    expect(page.get_by_role("heading", name="Billed 1")).to_be_visible()
    shots("receipt")
    page.get_by_role("link", name="Sessions").click()
    shots("sessions")
    page.get_by_role("link", name="Playground").click()
    page.get_by_placeholder("Ask something").fill('@engine {"chunks": 40, "pace_ms": 10, "completion_tokens": 40}')
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#all")).to_contain_text(" s", timeout=15_000)
    expect(page.locator(".said.assistant")).to_contain_text("tok tok tok")
    expect(page.locator("#fare")).to_have_text("1")
    expect(page.locator("#left")).to_have_text("998")
    expect(page.locator("#tokens")).to_contain_text("40 written")
    expect(page.locator("#code")).to_contain_text("client.chat.completions.create(")
    expect(page.locator("#nothing")).to_be_hidden()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    shots("playground")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_an_admin_gives_a_plan_and_an_operator_drains_a_replica(
    page: Page, house: Town, person: Callable[..., Person], shots: Callable[[str], None]
) -> None:
    for name in ("Northwind", "Blue Kiln"):
        a_month_of_use(house, Person("", person("").user_id, house.key("free", name=name)))
    sign_in(page, house, person("", on_installation="admin"))
    expect(page.get_by_role("heading", name="Accounts")).to_be_visible()
    shots("accounts")
    page.get_by_role("link", name="Northwind").click()
    page.get_by_label("Plan").select_option("premium")
    page.get_by_label("Why").fill("a pilot")
    page.get_by_role("button", name="Give").click()
    expect(page.locator("dl.facts").first).to_contain_text("Premium")
    shots("account")
    page.get_by_role("link", name="Fleet").click()
    page.get_by_role("button", name="Drain").click()
    expect(page.get_by_text("draining")).to_be_visible()
    shots("fleet")
    page.get_by_role("button", name="Undrain").click()
    expect(page.get_by_role("button", name="Drain")).to_be_visible()


def test_what_is_wrong_is_said_where_it_is(page: Page, house: Town, shots: Callable[[str], None]) -> None:
    page.goto(house.gateway().url + "/sign-in")
    page.get_by_label("Email").fill("nobody@example.com")
    page.get_by_label("Password").fill("no such password")
    with page.expect_response(lambda answer: answer.status == 422):
        page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Check both")
    shots("sign-in-wrong")
