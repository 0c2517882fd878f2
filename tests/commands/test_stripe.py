"""`faregate stripe` from the plans in PostgreSQL to the stand-in's catalogue: made once, cut off and gone on with."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
import stripe
import typer
from typer.testing import CliRunner, Result

from billing.seed import seed
from gateway.commands import accounts, plans, subscriptions
from gateway.commands import stripe as stripe_commands
from gateway.local.ports import free_port
from gateway.settings import Settings, SettingsWrong
from tests.support.stripe.running import KEY, StandInStripe, running_stripe

Run = Callable[..., Result]
app = typer.Typer()
app.add_typer(plans.app, name="plans")
app.add_typer(stripe_commands.app, name="stripe")
app.add_typer(accounts.app, name="accounts")
app.add_typer(subscriptions.app, name="subscriptions")


@pytest.fixture(scope="module")
def server() -> Iterator[StandInStripe]:
    with running_stripe() as running:
        yield running


@pytest.fixture
def stand_in(server: StandInStripe) -> StandInStripe:
    """One that knows nothing yet."""
    server.steer("forget")
    return server


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What a start needs, without servers."""
    needed = {"DATABASE_URL": "postgresql://u@127.0.0.1/x", "REDIS_URL": "redis://127.0.0.1/0", "FAREGATE_KEY_PEPPER": "p" * 32}
    for name, value in needed.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def run(database_url: str, valkey_url: str, stand_in: StandInStripe, monkeypatch: pytest.MonkeyPatch) -> Run:
    seed(database_url)
    settings = {
        "DATABASE_URL": database_url, "REDIS_URL": valkey_url, "FAREGATE_KEY_PEPPER": "p" * 32, "COLUMNS": "200",
        "FAREGATE_STRIPE_KEY": KEY, "FAREGATE_STRIPE_API_BASE": stand_in.url,
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def typed(line: str, *, code: int = 0) -> Result:
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == code, (line, result.output, result.exception)
        return result

    return typed


@pytest.fixture
def client(stand_in: StandInStripe) -> Iterator[stripe.StripeClient]:
    http = stripe.RequestsClient(timeout=20)
    yield stripe.StripeClient(KEY, base_addresses={"api": stand_in.url}, http_client=http)
    http.close()  # type: ignore[no-untyped-call]  # the SDK left its types out here


def answer(result: Result) -> Any:
    return orjson.loads(result.stdout)


def on_sale(client: stripe.StripeClient) -> dict[str | None, tuple[str, int | None]]:
    found = client.v1.prices.list({"active": True, "limit": 100}).data
    return {one.lookup_key: (one.id, one.unit_amount) for one in found}


def test_a_sync_makes_what_the_plans_say_and_the_next_one_nothing(run: Run, client: stripe.StripeClient) -> None:
    would = answer(run("stripe sync --dry-run --json"))
    assert on_sale(client) == {}
    done = answer(run("stripe sync --json"))
    assert [{**one, "id": None} for one in done] == [{**one, "id": None} for one in would]
    assert {key: amount for key, (_, amount) in on_sale(client).items()} == {"pro@1": 80_00, "premium@1": 350_00}
    assert {one.name for one in client.v1.products.list().data} == {"Pro", "Premium", "Enterprise"}
    assert answer(run("stripe sync --json")) == []
    assert "in step" in run("stripe sync").stderr


def test_who_has_a_price_keeps_it_when_a_new_version_is_sold(run: Run, client: stripe.StripeClient) -> None:
    run("stripe sync")
    old = on_sale(client)["pro@1"][0]
    customer = client.v1.customers.create({"payment_method": "pm_card_visa"})
    card = client.v1.payment_methods.list({"customer": customer.id}).data[0].id
    terms: Any = {"customer": customer.id, "items": [{"price": old}], "default_payment_method": card}
    bought = client.v1.subscriptions.create(terms)
    run("plans new-version pro --price-cents 9900")
    assert [one["act"] for one in answer(run("stripe sync --json"))] == ["create_price", "archive_price"]
    assert on_sale(client)["pro@2"][1] == 99_00
    assert "pro@1" not in on_sale(client)
    kept = client.v1.subscriptions.retrieve(bought.id)
    assert (kept.status, kept["items"].data[0].price.id) == ("active", old)
    with pytest.raises(stripe.InvalidRequestError, match="inactive"):
        client.v1.subscriptions.create(terms)


def test_another_currency_takes_the_key_over_and_back_again(
    run: Run, client: stripe.StripeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for currency in ("usd", "eur", "usd"):
        monkeypatch.setenv("FAREGATE_CURRENCY", currency)
        run("stripe sync")
        assert answer(run("stripe sync --json")) == []
        found = client.v1.prices.retrieve(on_sale(client)["pro@1"][0])
        assert (found.currency, found.metadata["faregate_version"]) == (currency, "1")
        seen.add(found.id)
    assert len(seen) == 3


def test_a_sync_that_was_cut_off_is_gone_on_with(run: Run, client: stripe.StripeClient, stand_in: StandInStripe) -> None:
    stand_in.steer("trouble", path="/v1/prices", status=500, count=3)  # the SDK's three tries; reading none is left to fail
    stand_in.steer("trouble", path="/v1/products", status=500, count=2, is_done=True)
    cut = run("stripe sync --json", code=1)
    assert "what was done is not done twice" in cut.stderr
    assert [one["act"] for one in answer(cut)] == ["create_product"] * 3
    assert [one["act"] for one in answer(run("stripe sync --json"))] == ["create_price"] * 2
    assert len(client.v1.products.list().data) == 3
    assert len(client.v1.prices.list().data) == 2


def test_what_is_asked_of_stripe_is_audited_first(run: Run, stand_in: StandInStripe, database_url: str) -> None:
    stand_in.steer("trouble", path="/v1/prices", status=500, count=3)
    run("stripe sync", code=1)
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT action, subject FROM audit_entries WHERE action LIKE 'stripe.%' ORDER BY id"
        ).fetchall()
    assert ("stripe.create_price", "pro@1") in found
    assert ("stripe.create_product", "faregate_pro") in found


def test_status_tells_the_account_and_what_a_sync_would_do(run: Run, stand_in: StandInStripe) -> None:
    told = answer(run("stripe status --json"))
    assert (told["mode"], told["account"], told["currency"]) == ("test", "acct_standin", "usd")
    assert (told["address"], told["steps_to_sync"]) == (stand_in.url, 5)
    run("stripe sync")
    assert answer(run("stripe status --json"))["steps_to_sync"] == 0
    assert KEY not in run("stripe status").output


def test_without_a_key_or_stripe_it_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAREGATE_STRIPE_API_BASE", f"http://127.0.0.1:{free_port()}")
    assert "Stripe can't be asked now" in run("stripe status", code=1).stderr
    monkeypatch.delenv("FAREGATE_STRIPE_KEY")
    assert "FAREGATE_STRIPE_KEY is not set" in run("stripe sync", code=1).stderr


def test_the_key_may_come_from_a_file(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAREGATE_STRIPE_KEY")
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv("FAREGATE_STRIPE_KEY_FILE", str(tmp_path / "key"))
    assert answer(run("stripe status --json"))["account"] == "acct_standin"


@pytest.mark.parametrize("key", ["", "  ", "pk_test_public", "sk_test_", "whsec_a"])
def test_what_is_no_secret_key_stops_the_start(environment: pytest.MonkeyPatch, key: str) -> None:
    environment.setenv("FAREGATE_STRIPE_KEY", key)
    with pytest.raises(SettingsWrong, match=r"FAREGATE_STRIPE_KEY: .*begins with sk_test_"):
        Settings.load()


def test_a_live_key_is_sent_to_stripe_alone(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FAREGATE_STRIPE_KEY", "sk_live_real")
    environment.setenv("FAREGATE_STRIPE_API_BASE", "http://127.0.0.1:1")
    with pytest.raises(SettingsWrong, match=r"FAREGATE_STRIPE_API_BASE: .*goes to Stripe alone") as wrong:
        Settings.load()
    assert "real" not in str(wrong.value)
    environment.delenv("FAREGATE_STRIPE_API_BASE")
    assert Settings.load().stripe_api_base is None
