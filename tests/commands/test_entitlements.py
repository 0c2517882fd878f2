"""Trials, grants and packs as an admin types them: the better plan is shown with what gives it, and each refusal is one line."""

from typing import Any

import orjson
import pytest

from tests.commands.rows import Run

GMAIL = "--email Ada+trial@GoogleMail.com"


def said(run: Run, line: str) -> Any:
    return orjson.loads(run(f"{line} --json").stdout)


@pytest.fixture(autouse=True)
def acme(run: Run) -> None:
    run("accounts create acme --email a@acme.test")


def has(run: Run) -> Any:
    return said(run, "accounts show acme")["has"]


def test_a_trial_begins_is_shown_and_ends_and_there_is_no_second(run: Run) -> None:
    assert "has had no trial" in run("trials show acme", code=1).stderr
    begun = said(run, f"trials start acme {GMAIL} --address 192.0.2.7")
    assert (begun["email_normal"], begun["network"], begun["plan_code"]) == ("ada@gmail.com", "192.0.2.0/24", "trial")
    assert has(run) == {"plan": "trial", "version": 1, "by": "trial"}
    assert "192.0.2.0/24" in run("trials show acme").stdout
    run("accounts create other --email a@acme.test")
    assert "one person has one" in run(f"trials start other {GMAIL}", code=1).stderr
    run("trials end acme")
    assert has(run)["plan"] == "free"
    assert "has had its trial" in run("trials start acme --email b@acme.test", code=1).stderr
    run("trials start other --email c@acme.test --address nowhere", code=2)


def test_a_grant_is_the_better_plan_until_it_is_revoked(run: Run) -> None:
    given = said(run, "grants add acme premium --until 2100-01-01 --why outage")
    assert given["until_at"] == "2100-01-01T00:00:00Z"
    assert has(run) == {"plan": "premium", "version": 1, "by": "grant"}
    said(run, "grants add acme enterprise --contract --why agreed")
    assert has(run) == {"plan": "enterprise", "version": 1, "by": "contract"}
    assert [one["plan_code"] for one in said(run, "grants list acme")] == ["enterprise", "premium"]
    listed = run("accounts list").stdout
    assert "enterprise v1" in listed
    assert "free v1" in listed
    for one in said(run, "grants list"):
        run(f"grants revoke {one['id']}")
        assert "could be revoked" in run(f"grants revoke {one['id']}", code=1).stderr
    assert has(run)["plan"] == "free"
    assert "has to end after" in run("grants add acme pro --until 2020-01-01 --why late", code=1).stderr


def test_packs_are_given_listed_and_capped(run: Run) -> None:
    assert said(run, "packs list acme") == []
    run("packs give acme 100 --why outage")
    [pack] = said(run, "packs list acme")
    assert (pack["fares"], pack["used"], pack["left"], pack["amount_cents"], pack["payment_intent"]) == (100, 0, 100, 0, None)
    assert "100" in run("packs list acme").stdout
    run("packs cap acme 20")
    assert said(run, "accounts show acme")["pack_fares_per_month"] == 20
    run("packs cap acme")
    assert said(run, "accounts show acme")["pack_fares_per_month"] is None
    assert "10,000,000" in run("packs give acme 10000001 --why much", code=1).stderr
