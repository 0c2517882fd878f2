"""Months of life of a shop: two seeds here, twenty by `make life`; and that the judge sees what is broken."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from billing import purchases
from billing.database import open_engine
from billing.seed import seed as seed_plans
from billing.shop import Shop
from billing.subscriptions import Fetched, fetch
from tests.simulation import life_run
from tests.simulation.life_run import live


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    seed_plans(database_url)
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.mark.parametrize("seed", [1, 2])
def test_after_months_of_life_the_record_is_what_stripe_says(engine: Engine, seed: int) -> None:
    lived = live(engine, seed, accounts=100, days=45)
    print(lived)
    assert lived.findings == []
    assert lived.deeds["done"] > 100
    assert lived.deeds["killed"] > 10


def no_refund(shop: Shop, payment_intent: str, done: Callable[[Connection], None]) -> None:
    with shop.engine.begin() as connection:
        done(connection)


def unwritten(shop: Shop, subscription_id: str, *, also: Callable[[Connection], None] = lambda _: None) -> Fetched:
    with shop.engine.begin() as connection:
        also(connection)
    return fetch(shop, subscription_id)


@pytest.mark.parametrize(
    ("where", "name", "broken", "words"),
    [
        (life_run, "end_doubles", lambda shop: 0, "has 2 subscriptions"),
        (purchases, "_refund", no_refund, "packs"),
        (purchases, "refresh", unwritten, "is not in the record"),
        (life_run, "sweep", lambda shop, since: None, "Stripe says"),
    ],
)
def test_the_judge_sees_what_is_broken(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, broken: Any, words: str
) -> None:
    monkeypatch.setattr(where, name, broken)
    lived = live(engine, 3, accounts=40, days=40)
    assert [finding for finding in lived.findings if words in finding]
