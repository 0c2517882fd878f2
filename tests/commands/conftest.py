"""Commands as a person types them, on a database and a Valkey of their own."""

import pytest
import typer
from typer.testing import CliRunner, Result

from billing.seed import seed
from gateway.commands import accounts, grants, keys, ledger, packs, plans, trials, usage
from tests.commands.rows import Run

GROUPS = {
    "accounts": accounts.app, "grants": grants.app, "keys": keys.app, "ledger": ledger.app, "packs": packs.app,
    "plans": plans.app, "trials": trials.app, "usage": usage.app,
}  # fmt: skip


@pytest.fixture
def run(database_url: str, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("accounts list --json")`; `code` is the exit code that it has to have."""
    seed(database_url)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", valkey_url)
    monkeypatch.setenv("FAREGATE_KEY_PEPPER", "p" * 32)
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)

    def typed(line: str, *, code: int = 0) -> Result:
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == code, (line, result.output, result.exception)
        return result

    return typed
