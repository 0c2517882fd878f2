"""`faregate plans check` on a real ledger and a fleet file with prices, and what it holds back."""

from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from tests.commands.rows import Run, write_rows

FLEET = """
[[replica]]
id = "big"
model = "qwen3.6-35b-a3b"
engine = "vllm"
url = "http://10.0.0.1:8000"
slots = 36
cost_cents_per_hour = 1800

[[replica]]
id = "small"
model = "qwen3-8b"
engine = "vllm"
url = "http://10.0.0.2:8000"
slots = 8
"""
BIG = {"model": "qwen3.6-35b-a3b", "queue_ms": 4_000, "total_ms": 40_000, "prompt_tokens": 9_000, "completion_tokens": 700}


@pytest.fixture(autouse=True)
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.setenv("FAREGATE_FLEET_FILE", str(tmp_path / "fleet.toml"))


@pytest.fixture
def acme(run: Run, database_url: str) -> str:
    """A Pro account with ten calls of 36 s on the large model, one of which broke, and two that never got there."""
    account: str = orjson.loads(run("accounts create acme --email a@acme.test --plan pro --json").stdout)["id"]
    ran = [BIG | {"account": account} for _ in range(9)]
    broke = BIG | {"account": account, "verdict": "voided", "reason": "engine_broke"}
    shed = BIG | {"account": account, "verdict": "voided", "reason": "shed", "replica": None}
    died = BIG | {"account": account, "verdict": "expired", "reason": "gateway_died", "total_ms": None}
    write_rows(database_url, [*ran, broke, shed, died])
    return account


def sheet(run: Run, line: str = "plans check --busy-percent 100 --json") -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(run(line).stdout)
    return found


def test_the_figures_are_those_of_the_ledger_and_the_fleet_file(run: Run, acme: str) -> None:
    """Ten calls of 36 s are 0.1 slot-hours at $0.50, $0.05 in one day, for nine fares: $1.50 a month; 30,000 fares: $166.67."""
    found = sheet(run)
    assert (found["days"], found["busy_percent"]) == (1, 100)
    pro = next(plan for plan in found["plans"] if plan["plan_code"] == "pro")
    assert (pro["accounts"], pro["calling"], pro["basis"]) == (1, 1, "own")
    assert (pro["typical_micros"], pro["full_micros"], pro["loses_from_permille"]) == (1_500_000, 166_666_667, 480)
    assert pro["worst_micros"] == 5 * 500_000 * 720
    assert [concern["kind"] for concern in pro["concerns"]] == ["full"]
    (calls,) = found["calls"]
    assert (calls["model"], calls["calls"], calls["slot_ms"], calls["micros_a_call"]) == ("qwen3.6-35b-a3b", 10, 36_000, 5_000)
    assert (calls["prompt_tokens"], calls["completion_tokens"]) == (9_000, 700)
    (dear,) = found["dearest_accounts"]
    assert (dear["account_id"], dear["cost_micros"], dear["paid_micros"]) == (acme, 50_000, 2_666_667)
    assert found["balance"] == {"revenue_micros": 80_000_000, "cost_micros": 18_000_000 * 720}


@pytest.mark.usefixtures("acme")
def test_idle_slots_are_paid_for_by_the_calls(run: Run) -> None:
    halved = sheet(run, "plans check --busy-percent 50 --json")
    assert halved["calls"][0]["micros_a_call"] == 10_000


@pytest.mark.usefixtures("acme")
def test_people_read_it_with_what_has_no_price(run: Run) -> None:
    told = run("plans check --busy-percent 100")
    for words in ("$0.5000", "$166.67", "48.0%", "$0.005000", "$1,800.00", "A month at list prices: $80.00"):
        assert words in told.stdout
    assert "qwen3-8b: their calls count as free" in told.stderr
    assert "pro v1: an account that uses more than 48% of the quota loses money" in told.stderr


def test_on_an_empty_ledger_it_says_so(run: Run) -> None:
    told = run("plans check")
    assert "Nobody called in these days." in told.stdout
    assert sheet(run)["days"] == 1


@pytest.mark.usefixtures("acme")
def test_an_account_on_an_older_version_is_shown_with_it(run: Run) -> None:
    run("plans new-version pro --name Professional")
    run("plans new-version premium --name Best")
    shown = {(plan["plan_code"], plan["plan_version"]): plan["accounts"] for plan in sheet(run)["plans"]}
    assert shown == {("free", 1): 0, ("pro", 1): 1, ("pro", 2): 0, ("premium", 2): 0, ("enterprise", 1): 0, ("trial", 1): 0}


@pytest.mark.usefixtures("acme")
def test_a_version_that_would_lose_more_is_not_saved_unless_that_is_meant(run: Run, database_url: str) -> None:
    """At 60% busy a fare of acme's costs $0.009259: 60,000 of them $555.56."""
    refused = run("plans new-version pro --quota-per-day 2000", code=1)
    assert "Not saved. With these numbers, an account that uses more than 14% of the quota loses money" in refused.stderr
    assert "$555.56" in refused.stderr
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM plans WHERE code = 'pro'").fetchone() == (1,)
    meant = run("plans new-version pro --quota-per-day 2000 --yes")
    assert "Saved, though with these numbers" in meant.stderr
    run("plans new-version pro --quota-per-day 1500")


@pytest.mark.usefixtures("acme")
def test_without_prices_nothing_is_held_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAREGATE_FLEET_FILE")
    run("plans new-version pro --quota-per-day 2000")
    assert "There is no fleet file" in run("plans check").stdout
