"""One trial for each person, mailbox and household; what was refused leaves nothing behind."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from billing.accounts import create_account
from billing.database import open_engine
from billing.entitled import plans_at
from billing.seed import seed
from billing.tables import audit_entries, trials
from billing.trials import Trial, TrialRefused, TrialTerms, end, normal_email, start, trial_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
TERMS = TrialTerms(days=7, per_network=2)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    seed(database_url)
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


def begin(engine: Engine, name: str, email: str = "", address: str | None = None, now: datetime = NOW) -> Trial:
    with engine.begin() as connection:
        account = create_account(connection, name=name, email="a@acme.test", plan_code="free", actor="test")
    with engine.begin() as connection:
        return start(
            connection, account.id, email=email or f"{name}@example.org", address=address, terms=TERMS, now=now, actor="test"
        )


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("Ada.Love+trial2@GoogleMail.com", "adalove@gmail.com"), ("a.d.a.l.o.v.e@gmail.com", "adalove@gmail.com"),
        ("ada.love@example.org", "ada.love@example.org"), ("ada+x+y@example.org", "ada@example.org"),
        (" \uff41da@example.org. ", "ada@example.org"), ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"), ("STRASSE@example.org", "strasse@example.org"),
        ("stra\u00dfe@example.org", "strasse@example.org"),
    ],
)  # fmt: skip
def test_a_mailbox_has_one_spelling(given: str, normal: str) -> None:
    assert normal_email(given) == normal


@pytest.mark.parametrize("given", ["", "ada", "@example.org", "+x@example.org", "ada@", "ada@localhost", "ada@..", "ada@a b.c"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(TrialRefused):
        normal_email(given)


def test_a_trial_is_had_for_its_days_and_no_longer(engine: Engine) -> None:
    begun = begin(engine, "ada")
    assert begun.ends_at == NOW + timedelta(days=7)
    for at, plan in ((NOW - timedelta(seconds=1), "free"), (NOW, "trial"), (begun.ends_at, "free")):
        with engine.begin() as connection:
            [term] = plans_at(connection, at, 7, [begun.account_id]).values()
        assert term.plan.code == plan
    assert begun.ends_at - timedelta(seconds=1) < begun.ends_at


@pytest.mark.parametrize("email", ["ada@gmail.com", "A.da+2@googlemail.com"])
def test_one_person_has_one_whatever_the_spelling_or_the_account(engine: Engine, email: str) -> None:
    begin(engine, "ada", "ada@gmail.com")
    with pytest.raises(TrialRefused, match="one person"):
        begin(engine, "other", email)


def test_an_account_has_one_and_none_anew_after_it_ended(engine: Engine) -> None:
    begun = begin(engine, "ada")
    again: Any = {"address": None, "terms": TERMS, "now": NOW + timedelta(days=30), "actor": "test"}
    with engine.begin() as connection, pytest.raises(TrialRefused, match="has had its trial"):
        start(connection, begun.account_id, email="second@example.org", **again)
    with engine.begin() as connection, pytest.raises(TrialRefused, match="no trial that runs"):
        end(connection, begun.account_id, NOW + timedelta(days=30), actor="test")


@pytest.mark.parametrize("email", ["ada@mailinator.com", "ada@deep.down.mailinator.com"])
def test_an_address_to_throw_away_is_refused(engine: Engine, email: str) -> None:
    with pytest.raises(TrialRefused, match="lasting"):
        begin(engine, "ada", email)


@pytest.mark.parametrize(
    ("addresses", "elsewhere"),
    [
        (("192.0.2.1", "192.0.2.99", "::ffff:192.0.2.3"), "192.0.3.1"),
        (("2001:db8:1::1", "2001:db8:1:ffff::2", "2001:db8:1:1::"), "2001:db8:2::1"),
    ],
)
def test_a_household_begins_so_many_in_a_day(engine: Engine, addresses: tuple[str, ...], elsewhere: str) -> None:
    *good, last = addresses
    for number, address in enumerate(good):
        begin(engine, f"a{number}", address=address)
    with pytest.raises(TrialRefused, match="network"):
        begin(engine, "late", address=last)
    begin(engine, "elsewhere", address=elsewhere)
    begin(engine, "tomorrow", address=last, now=NOW + timedelta(days=1, seconds=1))


def test_what_was_refused_leaves_nothing_and_what_began_is_audited(engine: Engine) -> None:
    begun = begin(engine, "ada", "ada@example.org")
    with pytest.raises(TrialRefused):
        begin(engine, "other", "ada+x@example.org")
    with engine.begin() as connection:
        assert connection.scalar(select(func.count()).select_from(trials)) == 1
        actions = select(audit_entries.c.action).where(audit_entries.c.action.like("trial%"))
        assert list(connection.scalars(actions)) == ["trial.start"]
        end(connection, begun.account_id, NOW + timedelta(days=1), actor="test")
        ended = trial_of(connection, begun.account_id)
    assert ended is not None
    assert ended.ends_at == NOW + timedelta(days=1)
