"""`faregate ledger`: what differs in words, mended on demand, and what the last proof found."""

from collections.abc import Iterator

import orjson
import psycopg
import pytest
import redis

from gateway.worker_metrics import STATUS_KEY
from tests.commands.rows import Run, write_rows


@pytest.fixture(autouse=True)
def acme(run: Run, database_url: str) -> str:
    """With two answers and a hang-up today, an answer yesterday."""
    account: str = orjson.loads(run("accounts create acme --email a@acme.test --json").stdout)["id"]
    call = {"account": account, "fare": 3}
    write_rows(database_url, [call, call, call | {"verdict": "voided", "reason": "left_before_output"}])
    write_rows(database_url, [call], days_ago=1)
    return account


@pytest.fixture
def touched(database_url: str) -> Iterator[None]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE usage_daily SET fares = fares + 1 WHERE posted = 2")
        yield


def test_a_record_that_adds_up_is_said_in_one_line(run: Run) -> None:
    assert "4 rows of 2 days were added up, 0 live counters compared: 0 differences." in run("ledger reconcile").stderr


@pytest.mark.usefixtures("touched")
def test_a_difference_is_told_in_words_with_exit_code_1_and_mended_on_demand(run: Run, acme: str) -> None:
    told = run("ledger reconcile", code=1)
    assert "roll-up" in told.stdout
    assert "acme" in told.stdout
    assert "the roll-up has 7 fares, the rows add up to 6" in told.stdout
    assert "1 difference. `--repair` mends" in told.stderr
    proof = orjson.loads(run("ledger reconcile --json", code=1).stdout)
    assert [(one["kind"], one["account"], one["is_repaired"]) for one in proof["findings"]] == [("roll-up", acme, False)]
    assert "1 difference, 1 mended." in run("ledger reconcile --repair").stderr
    run("ledger reconcile")


@pytest.mark.usefixtures("touched")
def test_one_day_can_be_asked_for(run: Run) -> None:
    days = orjson.loads(run("ledger reconcile --json", code=1).stdout)["days"]
    assert "1 row of 1 day" in run(f"ledger reconcile --day {days[0]}").stderr
    run(f"ledger reconcile --day {days[1]}", code=1)


@pytest.mark.usefixtures("touched")
def test_status_shows_what_the_last_proof_of_all_days_found(run: Run, valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url) as valkey:
        valkey.hset(STATUS_KEY, mapping={"worker": "w1", "inserted": 4})
    assert "never" in run("ledger status").stdout
    run("ledger reconcile", code=1)
    shown = run("ledger status").stdout
    assert "1 difference in 4 rows" in shown
    assert "the roll-up has 7 fares" in shown
    proved = orjson.loads(run("ledger status --json").stdout)["reconciled"]
    assert (proved["differences"], proved["repaired"], proved["night"]) == (1, 0, None)
    run("ledger reconcile --repair")
    assert "0 differences in 4 rows" in run("ledger status").stdout


def test_status_shows_what_waits_without_postgresql_too(run: Run, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with redis.Redis.from_url(valkey_url) as valkey:
        valkey.hset(STATUS_KEY, mapping={"worker": "w1", "oldest_waiting_ms": 90_000})
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    shown = run("ledger status").stdout
    assert "90,000" in shown
    assert "PostgreSQL can't be asked" in shown


def test_without_valkey_the_rows_are_added_up_and_it_says_what_was_not_proved(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    told = run("ledger reconcile", code=1)
    assert "Valkey can't be reached" in told.stdout
    assert "4 rows of 2 days" in told.stderr


def test_totals_and_an_accounts_latest_calls_are_shown(run: Run, acme: str) -> None:
    shown = run("ledger totals").stdout
    assert "Accounts" in shown
    assert "acme" in shown
    totals = orjson.loads(run("ledger totals --days 1 --json").stdout)
    assert [(day["accounts"], day["fares"], day["posted"], day["voided"]) for day in totals["days"]] == [(1, 6, 2, 1)]
    assert [(one["account_id"], one["plan_code"], one["calls"]) for one in totals["accounts"]] == [(acme, "free", 3)]
    assert totals["revenue"] == []
    calls = orjson.loads(run("ledger recent acme --json").stdout)
    assert [call["billed"] for call in calls].count(0) == 1
    assert [call["at"] for call in calls] == sorted((call["at"] for call in calls), reverse=True)
    assert len(orjson.loads(run("ledger recent acme --limit 2 --json").stdout)) == 2
    assert "left_before_output" in run("ledger recent acme").stdout
