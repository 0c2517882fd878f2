"""The commands on a real database and Valkey: tables and JSON, exit codes, and changes that are in Valkey when they return."""

from collections.abc import Callable
from typing import Any

import orjson
import psycopg
import pytest
import redis
import typer
from typer.testing import CliRunner, Result

from billing.seed import seed
from gateway.access.keys import digest, looks_valid
from gateway.commands import accounts, keys, ledger, models, plans, usage
from gateway.limits.shard import Shard, shard_of

PEPPER = "p" * 32
Run = Callable[..., Result]
app = typer.Typer()
for name, group in {
    "accounts": accounts,
    "keys": keys,
    "ledger": ledger,
    "models": models,
    "plans": plans,
    "usage": usage,
}.items():
    app.add_typer(group.app, name=name)


@pytest.fixture
def run(database_url: str, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    seed(database_url)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", valkey_url)
    monkeypatch.setenv("FAREGATE_KEY_PEPPER", PEPPER)
    monkeypatch.setenv("COLUMNS", "200")

    def typed(line: str, *, code: int = 0) -> Result:
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == code, (line, result.output, result.exception)
        return result

    return typed


def answer(result: Result) -> Any:
    return orjson.loads(result.stdout)


def test_accounts_are_made_listed_suspended_resumed_and_moved(run: Run) -> None:
    made = answer(run("accounts create acme --email a@acme.test --json"))
    assert (made["name"], made["plan_code"], made["state"], made["version"]) == ("acme", "free", "active", 1)
    assert answer(run("accounts suspend acme --json"))["state"] == "suspended"
    assert answer(run(f"accounts resume {made['id']} --json"))["state"] == "active"
    moved = answer(run("accounts set-plan acme pro --json"))
    assert (moved["plan_code"], moved["plan_version"], moved["version"]) == ("pro", 1, 4)
    assert answer(run("accounts list --json")) == [answer(run("accounts show acme --json"))]
    assert "acme" in run("accounts list").stdout
    assert "pro v1" in run("accounts show acme").stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("accounts show nobody", "no account 'nobody'"),
        ("accounts create acme --email a@acme.test", "already"),
        ("accounts create other --email nonsense", "no email address"),
        ("accounts create other --email a@b.test --plan gold", "no plan 'gold'"),
        ("accounts set-plan acme gold", "no plan 'gold'"),
        ("keys create nobody", "no account 'nobody'"),
        ("keys create acme --scope root", "Scopes are"),
        ("keys create acme --model gpt-oss-2b", "gpt-oss-20b"),
        ("keys revoke 0198c0de-0000-7000-8000-000000000001", "no key"),
        ("plans show gold", "no plan 'gold'"),
        ("plans new-version pro --quota-per-day 9999999999999", "The quota is"),
        ("plans new-version pro --floor-percent 51", "The floor is 0 to 50 percent"),
        ("plans new-version pro --queue-seconds 9999", "a wait is 0 to 3,600 seconds"),
        ("plans new-version pro --ttft-target-ms 0", "1 ms or more"),
        ("plans new-version pro --beyond-quota free", "refuse, slow or pack"),
        ("usage show nobody", "no account"),
        ("ledger status", "No worker has reported"),
    ],
)
def test_a_refusal_is_a_line_on_stderr_and_exit_code_1(run: Run, line: str, says: str) -> None:
    run("accounts create acme --email a@acme.test")
    refused = run(line, code=1)
    assert says in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    "line",
    [
        "accounts create",
        "keys rotate not-an-id",
        "keys create acme --network 10.0.0.0/99",
        "keys create acme --expires-in soon",
        "plans new-version pro",
        "plans new-version pro --price-cents cheap",
        "ledger reconcile --day yesterday",
    ],
)
def test_a_line_that_makes_no_sense_is_exit_code_2(run: Run, line: str) -> None:
    run(line, code=2)


def test_a_key_is_shown_once_and_its_terms_are_kept(run: Run, database_url: str) -> None:
    run("accounts create acme --email a@acme.test")
    terms = "--name ci --model GPT-OSS-20B --quota-per-day 7 --network 10.0.0.0/8 --expires-in 90d --scope read"
    made = answer(run(f"keys create acme {terms} --json"))
    assert looks_valid(made["key"])
    assert (made["allowed_models"], made["quota_per_day"], made["networks"]) == (["gpt-oss-20b"], 7, ["10.0.0.0/8"])
    assert (made["scopes"], made["name"], made["state"]) == (["read"], "ci", "active")
    assert made["key"] not in run("keys list acme --json").stdout
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT hash FROM keys").fetchone() == (digest(PEPPER, made["key"]),)


def test_without_json_the_key_alone_is_on_stdout(run: Run) -> None:
    run("accounts create acme --email a@acme.test")
    made = run("keys create acme")
    assert looks_valid(made.stdout.strip())
    assert "not shown again" in made.stderr


def test_a_key_that_lived_for_no_time_was_made_and_shown(run: Run) -> None:
    run("accounts create acme --email a@acme.test")
    assert "ends as it is made" in run("keys create acme --expires-in 0s", code=2).stderr
    assert answer(run("keys list --json")) == []


def test_a_word_that_was_no_id_was_answered_by_a_parser(run: Run) -> None:
    assert "is no key's id; `faregate keys list`" in run("keys revoke nope", code=2).stderr


def test_a_key_is_rotated_with_an_overlap_and_revoked(run: Run) -> None:
    run("accounts create acme --email a@acme.test")
    first = answer(run("keys create acme --json"))
    second = answer(run(f"keys rotate {first['id']} --overlap 2h --json"))
    assert second["rotated_from"] == first["id"]
    assert second["key"] != first["key"]
    assert answer(run(f"keys revoke {first['id']} --json"))["state"] == "revoked"
    assert {key["state"] for key in answer(run("keys list --json"))} == {"revoked", "active"}
    run(f"keys rotate {first['id']}", code=1)
    assert "revoked" in run("keys list acme").stdout


def test_a_change_is_in_valkey_when_the_command_returns(run: Run, valkey_url: str, database_url: str) -> None:
    account = answer(run("accounts create acme --email a@acme.test --json"))
    key = answer(run("keys create acme --json"))
    run(f"keys revoke {key['id']}")
    with redis.Redis.from_url(valkey_url) as valkey:
        counters = Shard(shard_of(account["id"]), "").account(account["id"])
        assert valkey.hget(counters, "v") == b"3"
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM staged_jobs").fetchone() == (0,)


def test_without_valkey_the_change_is_made_and_left_to_the_worker(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("accounts create acme --email a@acme.test")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    assert "the worker makes the change known" in run("accounts suspend acme").stderr
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT kind FROM staged_jobs").fetchall() == [("bump",)]


def test_without_postgresql_it_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    for line in ("accounts list", "ledger reconcile"):
        said = run(line, code=1).stderr
        assert "PostgreSQL can't be reached" in said
        assert "`make up`" in said


def test_a_plan_gets_a_new_version_and_accounts_stay_on_theirs(run: Run) -> None:
    run("accounts create old --email a@acme.test --plan pro")
    made = answer(run("plans new-version pro --quota-per-day 2000 --concurrency none --tier free --tier pro --json"))
    assert (made["version"], made["quota_per_day"], made["concurrency"], made["price_cents"]) == (2, 2000, None, 8000)
    run("accounts create new --email a@acme.test --plan pro")
    assert [one["plan_version"] for one in answer(run("accounts list --json"))] == [2, 1]
    assert answer(run("plans show pro --version 1 --json"))["quota_per_day"] == 1000
    later = answer(run("plans new-version pro --quota-per-day 9 --effective-from 2100-01-01 --json"))
    assert later["effective_from"] == "2100-01-01T00:00:00Z"
    assert answer(run("accounts set-plan old pro --json"))["plan_version"] == 2
    assert len(answer(run("plans list --json"))) == 7
    assert "Enterprise" in run("plans list").stdout
    assert "2,000" in run("plans show pro --version 2").stdout


def test_a_plan_says_how_its_calls_wait(run: Run) -> None:
    terms = "--floor-percent 20 --reserved-slots 2 --queue-depth 50 --queue-seconds 5 --ttft-target-ms 800 --beyond-quota slow"
    made = answer(run(f"plans new-version premium {terms} --json"))
    assert (made["floor_percent"], made["reserved_slots"], made["share_percent"]) == (20, 2, 100)
    assert (made["queue_depth"], made["queue_seconds"], made["ttft_target_ms"]) == (50, 5, 800)
    assert made["beyond_quota"] == "slow"
    freed = answer(run("plans new-version premium --queue-depth none --ttft-target-ms none --json"))
    assert (freed["queue_depth"], freed["ttft_target_ms"], freed["beyond_quota"]) == (None, None, "slow")
    shown = run("plans show premium --version 2").stdout
    assert "beyond quota" in shown
    assert "slow" in shown


def test_a_plan_was_shown_as_python_prints_it(run: Run) -> None:
    shown = run("plans show premium").stdout
    assert "35,000" in shown
    assert "free, pro, premium" in shown
    assert "None" not in shown


def test_models_are_listed(run: Run) -> None:
    listed = {model["id"]: model for model in answer(run("models list --json"))}
    assert listed["smollm2-135m-instruct"]["tier"] == "free"
    assert listed["smollm2-135m-instruct"]["served"] is False
    assert "smollm2-135m-instruct" in run("models list").stdout


def test_usage_and_reconcile_tell_what_is_there(run: Run, database_url: str) -> None:
    account = answer(run("accounts create acme --email a@acme.test --json"))["id"]
    assert answer(run("usage show acme --json")) == []
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO usage_daily VALUES (%s, (now() AT TIME ZONE 'UTC')::date, %s, 'm', 3, 2, 1, 0, 0, 9, 0, 4)",
            (account, account),
        )
    [day] = answer(run("usage show acme --days 1 --json"))
    assert (day["fares"], day["posted"], day["voided"], day["completion_tokens"]) == (3, 2, 1, 4)
    assert "Fares" in run("usage show acme").stdout
    proof = answer(run("ledger reconcile --json"))
    assert (proof["days"], proof["rows"], proof["counters"], proof["findings"]) == ([], 0, 0, [])
