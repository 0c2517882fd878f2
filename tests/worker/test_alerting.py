"""Alerts from the ledger to a receiver, which verifies them as docs/alerts.md says: in time, once, and after a fault again."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
import typer
from typer.testing import CliRunner, Result

from billing.accounts import create_account
from billing.database import open_engine
from billing.seed import seed
from gateway.commands import alerts
from tests.commands.rows import write_rows
from tests.support.gateway import wait_for
from tests.tidy.source import ROOT
from tests.worker.running import worker

HERE = "127.0.0.0/8"


@dataclass
class Receiver:
    """`answers` are statuses of the next posts; then it is 204."""

    port: int = 0
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def bodies(self) -> list[Any]:
        return [orjson.loads(body) for _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def run(database_url: str, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`run("show acme")` of `faregate alerts`, with the pepper of `tests.worker.running`."""
    for name, value in {"DATABASE_URL": database_url, "REDIS_URL": valkey_url, "FAREGATE_KEY_PEPPER": "p" * 32}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAREGATE_ALERTS_ALLOWED", HERE)
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    app.add_typer(alerts.app, name="alerts")

    def typed(line: str, *, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["alerts", *line.split()])
        assert result.exit_code == code, (line, result.output, result.exception)
        return result

    return typed


@pytest.fixture
def acme(database_url: str) -> str:
    """On Free: 60 calls a day."""
    seed(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        made = create_account(connection, name="acme", email="a@acme.test", plan_code="free", actor="test")
    engine.dispose()
    return str(made.id)


def verify() -> Callable[[str, Mapping[str, str], bytes], None]:
    """The function that the page gives to receivers."""
    page = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")
    [snippet] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(snippet, scope)
    found: Callable[[str, Mapping[str, str], bytes], None] = scope["verify"]
    return found


def use(database_url: str, account: str, fares: int) -> None:
    write_rows(database_url, [{"account": account, "fare": fares}])


def test_thresholds_are_told_in_seconds_once_each_across_restarts_and_two_workers(
    run: Callable[..., Result], acme: str, database_url: str, valkey_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    secret = run(f"set acme {receiver.url}").stdout.strip()
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    with worker(database_url, valkey_url, one), worker(database_url, valkey_url, two):
        use(database_url, acme, 29)
        use(database_url, acme, 2)
        wait_for(lambda: receiver.got, 10)
        use(database_url, acme, 28)
        wait_for(lambda: len(receiver.got) == 2, 10)
    with worker(database_url, valkey_url, one):
        use(database_url, acme, 1)
        wait_for(lambda: len(receiver.got) == 3, 10)
        wait_for(lambda: state(run)["alerts"][0]["delivered_at"], 5)
    said = [body["data"] for body in receiver.bodies()]
    assert [(one["threshold_percent"], one["used"], one["quota"]) for one in said] == [(50, 31, 60), (80, 59, 60), (100, 60, 60)]
    assert {one["account"]["name"] for one in said} == {"acme"}
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 3
    for headers, body in receiver.got:
        verify()(secret, headers, body)
    assert [one["threshold"] for one in state(run)["alerts"]] == [100, 80, 50]


def test_what_was_not_taken_is_sent_again_under_the_same_id(
    run: Callable[..., Result], acme: str, database_url: str, valkey_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers = [500]
    run(f"set acme {receiver.url}")
    use(database_url, acme, 30)
    with worker(database_url, valkey_url, tmp_path / "log"):
        wait_for(lambda: len(receiver.got) == 1, 10)
        wait_for(lambda: state(run)["alerts"][0]["problem"] == "its server answered with status 500")
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("UPDATE alerts SET next_try_at = now()")
        wait_for(lambda: len(receiver.got) == 2, 10)
        wait_for(lambda: state(run)["alerts"][0]["delivered_at"])
    (first, body), (second, again) = receiver.got
    assert (first["webhook-id"], body) == (second["webhook-id"], again)
    assert (state(run)["alerts"][0]["tries"], state(run)["alerts"][0]["problem"]) == (2, None)


def test_a_private_address_is_not_posted_to_unless_the_operator_lists_it(
    run: Callable[..., Result], acme: str, database_url: str, receiver: Receiver, valkey_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    run(f"set acme {receiver.url}")
    monkeypatch.delenv("FAREGATE_ALERTS_ALLOWED")
    use(database_url, acme, 30)
    with worker(database_url, valkey_url, tmp_path / "log"):
        wait_for(lambda: state(run)["alerts"] and state(run)["alerts"][0]["problem"], 10)
    assert "does not lead to a public address" in state(run)["alerts"][0]["problem"]
    assert receiver.got == []
    assert "not delivered" in run("test acme", code=1).stderr


@pytest.mark.usefixtures("acme")
def test_a_first_message_can_be_sent_and_what_is_not_ours_is_told_apart(run: Callable[..., Result], receiver: Receiver) -> None:
    older = run(f"set acme {receiver.url}").stdout.strip()
    secret = orjson.loads(run(f"set acme {receiver.url} --json").stdout)["secret"]
    assert "Delivered" in run("test acme").stderr
    [(headers, body)] = receiver.got
    assert orjson.loads(body)["type"] == "test"
    verify()(secret, headers, body)
    for forged in (
        (older, headers, body),
        (secret, headers, body + b" "),
        (secret, headers | {"webhook-id": "another"}, body),
        (secret, headers | {"webhook-timestamp": "1"}, body),
    ):
        with pytest.raises(ValueError, match="not of this secret"):
            verify()(*forged)


@pytest.mark.usefixtures("acme")
def test_the_secret_is_stored_nowhere_and_the_address_is_in_no_audit_entry(
    run: Callable[..., Result], receiver: Receiver, database_url: str
) -> None:
    secret = run(f"set acme {receiver.url}?token=quiet").stdout.strip()
    with psycopg.connect(database_url) as connection:
        [(entry,)] = connection.execute("SELECT details::text FROM audit_entries WHERE action = 'alerts.set'").fetchall()
        kept = connection.execute("SELECT alert_targets::text FROM alert_targets").fetchall()
    assert secret.removeprefix("whsec_") not in str(kept)
    assert "127.0.0.1" in entry
    assert "quiet" not in entry


@pytest.mark.usefixtures("acme")
def test_refusals(run: Callable[..., Result]) -> None:
    assert "https" in run("set acme http://hooks.example/", code=2).stderr
    assert "user name" in run("set acme https://me@hooks.example/", code=2).stderr
    assert "no address" in run("clear acme", code=1).stderr
    assert "no address" in run("test acme", code=1).stderr
    assert "no account" in run("show nobody", code=1).stderr
    run("set acme https://hooks.example/")
    assert "https://hooks.example/" in run("show acme").stdout
    run("clear acme")
    assert state(run) == {"url": None, "alerts": []}


def state(run: Callable[..., Result]) -> Any:
    return orjson.loads(run("show acme --json").stdout)
