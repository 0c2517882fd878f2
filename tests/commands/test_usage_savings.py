"""`faregate usage savings` and `what-if` on a real ledger: billed calls alone, in both directions, by an index."""

import re
from typing import Any

import orjson
import psycopg
import pytest

from billing.token_prices import SOURCE
from billing.traffic import TRAFFIC
from tests.commands.rows import Run, write_rows


@pytest.fixture
def acme(run: Run, database_url: str) -> str:
    """A Pro account with 20 long calls to GLM 4.7, one to a model that nobody sells, and one that broke."""
    account: str = orjson.loads(run("accounts create acme --email a@acme.test --plan pro --json").stdout)["id"]
    long = {"account": account, "model": "glm-4.7", "prompt_tokens": 500_000, "cached_tokens": 0, "completion_tokens": 10_000}
    broke = long | {"verdict": "voided", "reason": "engine_broke"}
    own = {"account": account, "model": "smollm2-135m-instruct"}
    stranger = {"model": "glm-4.7", "prompt_tokens": 10**9}
    write_rows(database_url, [*[long] * 20, broke, own, stranger])
    return account


def found(run: Run, line: str) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(run(line).stdout)
    return answer


@pytest.mark.usefixtures("acme")
def test_billed_calls_stand_beside_prices_by_the_token(run: Run) -> None:
    """10 M in at $0.60 and 0.2 M out at $2.20 are $6.44; the day of the plan is $2.67, 20/21 of it for these."""
    told = found(run, "usage savings acme --json")
    assert (told["days"], told["fares"], told["unknown_fares"], told["plan"]) == (1, 21, 1, "pro@1")
    assert (told["prices"], told["currency"]) == (SOURCE, "usd")
    assert (told["flat_micros"], told["flat_compared_micros"], told["dearest_micros"]) == (2_666_667, 2_539_683, 6_440_000)
    assert told["saved_at_most_micros"] == 6_440_000 - 2_539_683
    known = told["models"][0]
    assert (known["traffic"]["calls"], known["traffic"]["prompt_tokens"]) == (20, 10_000_000)
    assert {offer["price"]["provider"] for offer in known["offers"]} == {"fireworks", "novita", "openrouter", "zai"}


@pytest.mark.usefixtures("acme")
def test_people_are_told_the_direction_the_use_and_where_prices_are_from(run: Run) -> None:
    told = run("usage savings acme").stdout
    for words in ("the flat fare is cheaper by $3.90", "with 2.1% of the quota used", SOURCE, "in US dollars", "unknown"):
        assert words in told
    assert "1 of 21 fares went to models without a price elsewhere" in told


def test_short_chats_are_told_to_be_dearer(run: Run) -> None:
    told = run("usage what-if --model gpt-oss-20b --calls-a-day 300 --prompt-tokens 500 --output-tokens 250").stdout
    assert re.search(r"Beside the cheapest providers, the flat fare is dearer by \$79\.\d\d\.", told)
    assert "with 30.0% of the quota used; to $0.002667 if all of it were" in told


@pytest.mark.usefixtures("acme")
def test_what_can_not_be_compared_says_so(run: Run) -> None:
    line = "--calls-a-day 9 --prompt-tokens 1 --output-tokens 1"
    assert "nothing to compare" in run(f"usage what-if --model glm-4.7 --plan enterprise {line}").stdout
    assert (
        "more than the 60"
        in run("usage what-if --model glm-4.7 --plan free --calls-a-day 61 --prompt-tokens 1 --output-tokens 1", code=1).stderr
    )
    assert "no model named" in run(f"usage what-if --model gold {line}", code=1).stderr
    run("accounts create bob --email b@b.test")
    assert "Nothing was billed in these days." in run("usage savings bob").stdout


def test_an_accounts_rows_are_found_by_their_index(acme: str, database_url: str) -> None:
    """Among rows of others in several days: only the days asked for are looked at, and each by the account's index."""
    other = "0198c0de-0000-7000-8000-000000000002"
    for days_ago in (0, 1, 2):
        write_rows(database_url, [{"account": other} for _ in range(1_500)], days_ago=days_ago)
    query = re.sub(r":(\w+)", r"%(\1)s", str(TRAFFIC).replace("::bigint", "")).encode()
    with psycopg.connect(database_url) as connection:
        connection.execute("ANALYZE requests")
        days = connection.execute("SELECT min(day), max(day) FROM requests").fetchone()
        assert days is not None
        asked = {"account": acme, "first": days[1], "last": days[1]}
        plan = "\n".join(row[0] for row in connection.execute(b"EXPLAIN " + query, asked).fetchall())
    assert len(set(re.findall(r"on (requests_\d{8})", plan))) == 1, plan
    assert re.search(r"requests_\d{8}_account_id_at_idx", plan), plan
    assert "Seq Scan" not in plan, plan
