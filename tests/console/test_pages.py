"""What pages say and what their forms do, against a running gateway, its worker and its stores."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from billing.verdict import Outcome
from gateway.access.issue import list_keys
from gateway.access.sessions import begin
from gateway.access.users import create_user
from gateway.console.pages.requests import words
from gateway.console.pages.usage import LINES_MAX
from gateway.console.visit import SESSION
from tests.console.conftest import MODEL, PASSWORD, Person
from tests.console.visitor import Visitor
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import PEPPER, BuildTown, Customer, Town, wait_for


def call(house: Town, customer: Customer, **fields: Any) -> str:
    """Its request id."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], **fields}
    answer = httpx2.post(f"{house.gateway().url}/v1/chat/completions", json=body, headers=customer.headers, timeout=20)
    assert answer.status_code == 200
    return str(answer.headers["x-request-id"])


@pytest.fixture
def owner(person: Callable[..., Person], house: Town) -> Person:
    return person(customer=house.key("pro"))


@pytest.fixture
def browser(owner: Person, signed_in: Callable[[Person], Visitor]) -> Visitor:
    return signed_in(owner)


@pytest.fixture
def recorded(owner: Person, browser: Visitor, house: Town) -> str:
    """The id of a call that stands in the ledger."""
    assert owner.customer is not None
    request_id = call(house, owner.customer)
    wait_for(lambda: browser.get(f"/app/requests/{request_id}").status_code == 200, 10)
    return request_id


def test_a_new_account_is_told_how_to_make_its_first_call(browser: Visitor) -> None:
    page = browser.get("/app").text
    assert "Your first call" in page
    assert re.search(r"<dd>1,000\s*<small>of 1,000</small></dd>", page)


def test_what_is_left_today_is_what_the_gate_says(owner: Person, browser: Visitor, house: Town) -> None:
    assert owner.customer is not None
    for _ in range(3):
        call(house, owner.customer)
    wait_for(lambda: re.search(r"<dd>997\s*<small>of 1,000</small></dd>", browser.get("/app").text) is not None)


def test_a_call_is_in_the_log_with_a_receipt_that_says_why(recorded: str, browser: Visitor) -> None:
    receipt = browser.get(f"/app/requests/{recorded}").text
    assert "Billed 1" in receipt
    assert words("answered") in receipt
    assert recorded in browser.get("/app/requests").text


def test_every_way_a_call_can_end_has_words() -> None:
    assert all(words(outcome.value) != outcome.value for outcome in Outcome)


def test_a_receipt_of_another_account_is_not_there(
    recorded: str, person: Callable[..., Person], signed_in: Callable[[Person], Visitor]
) -> None:
    assert signed_in(person()).get(f"/app/requests/{recorded}").status_code == 404


@pytest.mark.parametrize("path", ["not-an-id", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000"])
def test_what_is_no_receipt_is_not_there(browser: Visitor, path: str) -> None:
    assert browser.get(f"/app/requests/{path}").status_code == 404


def test_usage_adds_up_on_the_page_and_in_the_spreadsheet(recorded: str, browser: Visitor) -> None:
    page = browser.get("/app/usage?days=7").text
    assert "1 fares for 1 billed requests" in page
    answer = browser.get("/app/usage.csv?days=7")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert (row["model"], row["fares"], row["posted"]) == (MODEL, "1", "1")


@pytest.mark.parametrize("days", ["0", "-1", "x", "99999999999", "³", "' OR 1"])
def test_days_that_can_not_be_are_the_usual_or_the_nearest(browser: Visitor, days: str) -> None:
    assert browser.client.get("/app/usage", params={"days": days}).status_code == 200


def test_a_key_is_shown_once_works_and_stops_when_it_is_revoked(browser: Visitor, house: Town) -> None:
    browser.get("/app/keys")
    made = browser.post("/app/keys", name="<b>mine</b>", quota="5", days="30")
    token = re.search(r'<code id="made">(fare_live_\w+)</code>', made.text)
    assert token is not None
    assert "<b>mine</b>" not in made.text
    headers = {"authorization": f"Bearer {token[1]}"}
    url = f"{house.gateway().url}/v1/key"
    assert httpx2.get(url, headers=headers).json()["limits"]["key_requests_per_day"] == 5
    again = browser.get("/app/keys").text
    assert token[1] not in again
    for key_id in set(re.findall(r"/app/keys/([0-9a-f-]{36})/revoke", again)):
        browser.post(f"/app/keys/{key_id}/revoke")
    wait_for(lambda: httpx2.get(url, headers=headers).status_code == 401)
    assert "nothing can be called" in browser.get("/app/keys").text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "1 to 200 characters"),
        ({"name": "x" * 201}, "1 to 200 characters"),
        ({"name": "x", "quota": "many"}, "number of requests a day"),
        ({"name": "x", "quota": "-1"}, "number of requests a day"),
        ({"name": "x", "days": "7"}, "one of the lifetimes"),
    ],
)
def test_a_key_that_can_not_be_is_refused_with_what_to_change(browser: Visitor, fields: dict[str, str], said: str) -> None:
    browser.get("/app/keys")
    answer = browser.post("/app/keys", **fields)
    assert answer.status_code == 422
    assert said in answer.text


@pytest.fixture
def admin(person: Callable[..., Person], signed_in: Callable[[Person], Visitor]) -> Visitor:
    return signed_in(person("", on_installation="admin"))


def test_an_admin_finds_an_account_by_a_part_of_its_name(admin: Visitor, owner: Person, house: Town) -> None:
    house.key("free", name="Acme 100% Ltd_")
    assert "Acme 100% Ltd_" in admin.get("/admin?q=100%25 ltd_").text
    assert "Acme 100% Ltd_" not in admin.get("/admin?q=100_").text
    assert "No account is called that" in admin.get("/admin?q=nobody-at-all").text


def test_a_plan_that_an_admin_gives_and_a_suspension_are_felt_within_a_second(
    admin: Visitor, owner: Person, browser: Visitor, house: Town
) -> None:
    assert owner.customer is not None
    at = f"/admin/accounts/{owner.customer.account_id}"
    key_url, headers = f"{house.gateway().url}/v1/key", owner.customer.headers

    def plan() -> str:
        return str(httpx2.get(key_url, headers=headers).json()["plan"]["code"])

    assert plan() == "pro"
    admin.get(at)
    assert admin.post(f"{at}/plan", plan="premium", days="7", why="a good customer").status_code == 303
    wait_for(lambda: plan() == "premium", 1.5)
    assert "Premium plan, by grant" in browser.get("/app").text
    assert admin.post(f"{at}/state", state="suspended").status_code == 303
    wait_for(lambda: httpx2.get(key_url, headers=headers).status_code == 403, 1.5)
    assert "grant.give" in admin.get(at).text


@pytest.mark.parametrize(
    "fields", [{"plan": "gold", "days": "7", "why": "x"}, {"plan": "pro", "days": "8", "why": "x"}, {"plan": "pro", "days": "7"}]
)
def test_a_grant_that_can_not_be_is_refused(admin: Visitor, owner: Person, fields: dict[str, str]) -> None:
    assert owner.customer is not None
    at = f"/admin/accounts/{owner.customer.account_id}"
    admin.get(at)
    answer = admin.post(f"{at}/plan", **fields)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text


def test_an_operator_drains_a_replica_and_calls_are_given_it_no_more(
    person: Callable[..., Person], signed_in: Callable[[Person], Visitor]
) -> None:
    operator = signed_in(person("", on_installation="operator"))
    wait_for(lambda: "/ops/replicas/stand-in" in operator.get("/ops").text, 5)
    assert operator.post("/ops/replicas/stand-in", event="drain").status_code == 303
    assert "Undrain" in operator.get("/ops").text
    assert operator.post("/ops/replicas/stand-in", event="sleep").status_code == 422
    assert operator.post("/ops/replicas/stand-in", event="undrain").status_code == 303
    assert operator.post("/ops/replicas/none", event="drain").status_code == 404


def test_the_first_page_has_the_plans_of_the_record_and_is_small(visitor: Visitor) -> None:
    page = visitor.get("/")
    assert page.status_code == 200
    assert "$80" in page.text
    assert "1,000" in page.text
    assert "By contract" in page.text
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text))
    assert len(files) == 3
    carried = sum(int(visitor.client.get(path).headers["content-length"]) for path in ["/", *files])
    assert carried < 150_000


def test_pages_run_nothing_but_our_own_files_and_files_stay(visitor: Visitor) -> None:
    page = visitor.get("/sign-in")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=|https?://(?!127\.0\.0\.1)", page.text)
    [style] = re.findall(r'href="(/static/faregate[^"]+css)"', page.text)
    kept = visitor.client.get(style)
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert visitor.client.get("/static/../settings.py").status_code == 404
    assert visitor.client.get("/static/faregate.css").status_code == 404


def test_a_page_that_is_not_there_says_so_in_html_and_an_api_path_in_json(visitor: Visitor) -> None:
    assert "There is no such page" in visitor.get("/app/nothing").text
    assert visitor.get("/v1/nothing").json()["error"]["code"] == "not_found"


def test_a_form_that_is_too_large_is_no_form(browser: Visitor) -> None:
    assert browser.post("/app/keys", name="x" * 70_000).status_code == 400


def test_the_playgrounds_key_calls_for_an_hour_and_is_not_among_the_keys(
    browser: Visitor, owner: Person, house: Town, person: Callable[..., Person], signed_in: Callable[[Person], Visitor]
) -> None:
    assert f'<option value="{MODEL}">' in browser.get("/app/playground").text
    answer = browser.post("/app/playground/key")
    headers = {"authorization": f"Bearer {answer.json()['key']}"}
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    assert httpx2.post(f"{house.gateway().url}/v1/chat/completions", json=body, headers=headers, timeout=20).status_code == 200
    with house.record() as connection:
        made = [key for key in list_keys(connection, owner.customer.account_id) if key.terms.name == "playground"]  # type: ignore[union-attr]
    assert [key.terms.expires_at - key.created_at < timedelta(hours=1, seconds=5) for key in made if key.terms.expires_at] == [
        True
    ]
    assert "playground</td>" not in browser.get("/app/keys").text
    assert signed_in(person("viewer")).post("/app/playground/key").status_code == 403


def test_a_model_with_replicas_of_one_account_alone_is_not_on_the_first_page(
    build_town: BuildTown, standing_engine: StandInEngine
) -> None:
    """Its pool is named for the account: the page looked for a model of that name, and failed."""
    own = (
        standing_engine.fleet_entry().replace('id = "stand-in"', 'id = "own"').replace(f'model = "{MODEL}"', 'model = "qwen3-8b"')
    )
    assert "qwen3-8b" in own
    with (
        build_town(standing_engine.fleet_entry() + own + 'dedicated_to = "acme"\n') as built,
        Visitor(built.gateway().url) as visitor,
    ):
        page = visitor.get("/")
        assert page.status_code == 200
        assert MODEL in page.text
        assert "qwen3-8b" not in page.text
        with built.record() as connection:
            user_id = create_user(connection, email="o@example.com", password=PASSWORD, role="operator", actor="test")
            token = begin(connection, user_id, pepper=PEPPER, now=datetime.now(UTC), address="127.0.0.1", agent="")
        visitor.client.cookies.set(SESSION, token)
        assert "qwen3-8b@acme" in visitor.get("/ops").text


def test_a_spreadsheet_of_too_many_lines_says_so_and_is_not_cut(owner: Person, browser: Visitor, house: Town) -> None:
    assert owner.customer is not None
    with house.record() as connection:
        made = """
            INSERT INTO usage_daily (account_id, day, key_id, model, fares, posted, voided, expired, hangups, prompt_tokens,
                                     cached_tokens, completion_tokens)
            SELECT :account, current_date, :key, 'm' || n, 1, 1, 0, 0, 0, 1, 0, 1 FROM generate_series(1, :many) n"""
        connection.execute(
            text(made), {"account": owner.customer.account_id, "key": owner.customer.key_id, "many": LINES_MAX + 1}
        )
    answer = browser.get("/app/usage.csv?days=7")
    assert answer.status_code == 422
    assert "Take fewer days" in answer.text
