"""`faregate usage export` on a real ledger: what a row says, both forms, the days asked for, and plans that begin at once."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import psycopg
import pytest
from sqlalchemy import text
from typer.testing import Result

from billing.database import open_engine
from billing.statements import DAILY, RECEIPTS, ROWS_AT_ONCE, Statement, statement_rows
from tests.commands.rows import Run, write_rows


@pytest.fixture
def acme(run: Run, database_url: str) -> str:
    """With a key whose name is a formula: an answer and a call that broke today, and an answer three days ago."""
    account: str = orjson.loads(run("accounts create acme --email a@acme.test --json").stdout)["id"]
    key = orjson.loads(run("keys create acme --name =1+1 --json").stdout)["id"]
    call = {"account": account, "key": key, "fare": 2}
    write_rows(
        database_url, [call, call | {"verdict": "voided", "reason": "engine_broke", "status": 502}, {"model": "of others"}]
    )
    write_rows(database_url, [call], days_ago=3)
    return account


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout, newline="")))


@pytest.mark.usefixtures("acme")
def test_a_receipt_says_what_was_held_and_what_was_billed_and_not_where_it_ran(run: Run) -> None:
    found = rows(run("usage export acme --by request"))
    assert [(row["fare"], row["billed"], row["verdict"], row["reason"]) for row in found] == [
        ("2", "2", "posted", "answered"),
        ("2", "2", "posted", "answered"),
        ("2", "0", "voided", "engine_broke"),
    ]
    assert {row["key_name"] for row in found} == {"'=1+1"}
    assert found[0]["at"] < found[1]["at"]
    assert not {"replica", "gateway", "account_id"} & found[0].keys()


@pytest.mark.usefixtures("acme")
def test_days_are_summed_by_key_and_model(run: Run) -> None:
    older, today = rows(run("usage export acme"))
    assert (older["fares"], older["posted"], older["voided"], older["model"]) == ("2", "1", "0", "m")
    assert (today["fares"], today["posted"], today["voided"], today["prompt_tokens"]) == ("2", "1", "1", "20")


@pytest.mark.usefixtures("acme")
def test_only_the_days_asked_for_are_written(run: Run) -> None:
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert len(rows(run(f"usage export acme --by request --since {yesterday}"))) == 2
    assert len(rows(run(f"usage export acme --by request --until {yesterday}"))) == 1
    run(f"usage export acme --since {yesterday} --until 2020-01-01", code=2)


@pytest.mark.usefixtures("acme")
def test_json_is_one_array_with_a_name_as_it_is(run: Run) -> None:
    found = orjson.loads(run("usage export acme --by request --format json").stdout)
    assert [row["billed"] for row in found] == [2, 2, 0]
    assert (found[0]["key_name"], found[0]["stream"]) == ("=1+1", False)
    run("accounts create bob --email b@b.test")
    assert orjson.loads(run("usage export bob --format json").stdout) == []
    assert len(run("usage export bob").stdout.splitlines()) == 1


def test_the_first_row_is_there_while_the_rest_is_in_the_database(acme: str, database_url: str) -> None:
    write_rows(database_url, [{"account": acme} for _ in range(ROWS_AT_ONCE * 2)])
    today = datetime.now(UTC).date()
    engine = open_engine(database_url)
    with engine.connect() as connection:
        found = statement_rows(connection, RECEIPTS, UUID(acme), today, today)
        next(found)
        assert connection.scalar(text("SELECT count(*) FROM pg_cursors WHERE statement LIKE '%FROM requests r%'")) == 1
        assert sum(1 for _ in found) == ROWS_AT_ONCE * 2 + 1
        assert connection.scalar(text("SELECT count(*) FROM pg_cursors WHERE statement LIKE '%FROM requests r%'")) == 0
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "index"),
    [(RECEIPTS, r"requests_\d{8}_account_id_at_idx"), (DAILY, "usage_daily_pkey")],
    ids=["receipts", "days"],
)
def test_a_statement_begins_without_reading_the_table(acme: str, database_url: str, statement: Statement, index: str) -> None:
    """Among rows of fifty others in four days: two days are looked at, by an index that has the order already."""
    others = [UUID(int=number) for number in range(1, 51)]
    for days_ago in range(4):
        write_rows(database_url, [{"account": str(one)} for one in others for _ in range(40)], days_ago=days_ago)
    today = datetime.now(UTC).date()
    query = re.sub(r":(\w+)", r"%(\1)s", statement.query)
    with psycopg.connect(database_url) as connection:
        connection.execute("ANALYZE")
        asked = {"account": acme, "first": today - timedelta(days=1), "last": today}
        declared = f"EXPLAIN DECLARE c CURSOR FOR {query}".encode()
        plan = "\n".join(row[0] for row in connection.execute(declared, asked).fetchall())
    assert re.search(index, plan), plan
    assert not re.search(r"Seq Scan on (requests|usage)", plan), plan
    if statement is RECEIPTS:
        assert set(re.findall(r"on (requests_\d{8})", plan)) == {
            f"requests_{today - timedelta(days=ago):%Y%m%d}" for ago in (0, 1)
        }
        assert "Merge Append" in plan
        assert "->  Sort" not in plan, plan
