"""Months of a shop's life from one seed: what people do, what the post does to events, and processes that end anywhere."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Engine

from billing.plan_versions import add_version
from billing.purchases import apply_due, end_doubles, sweep
from billing.stripe import StripeRefused, StripeUnavailable
from tests.simulation.life_judge import findings
from tests.simulation.life_people import People
from tests.simulation.life_world import Killed, Life, open_life
from tests.support.stripe.world import DAY, HOUR

DAYS = 100
ACTS_A_DAY = 0.06  # of one account
KILLS = 0.02  # at each point between two steps
SWEEPS = 0.2  # of a day: seldomer than in life, so that more of what was lost adds up
HABITS = {"lose": 0.1, "double": 0.2, "late": 0.3, "late_seconds": 2 * DAY, "shuffle": True}


@dataclass(slots=True)
class Lived:
    seed: int
    deeds: Counter[str] = field(default_factory=Counter)
    kills: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def live(engine: Engine, seed: int, *, accounts: int, days: int = DAYS) -> Lived:
    """On a database that is migrated, seeded and otherwise empty."""
    life, lived = open_life(engine, seed), Lived(seed)
    life.put_on_sale()
    people = People(life, accounts)
    life.api.post.set_habits(HABITS)
    life.fate.chance = KILLS
    swept: datetime | None = None
    for day in range(days):
        if day == days // 2:
            _sell_a_new_version(life)
        swept = _day(life, people, lived, swept)
    _end_well(life)
    lived.kills = life.fate.points
    lived.findings = findings(life, people.accounts)
    return lived


def _day(life: Life, people: People, lived: Lived, swept: datetime | None) -> datetime | None:
    for _ in range(4):
        life.world.advance(life.world.now + 6 * HOUR)
        for name in people.accounts:
            if life.chance.random() < ACTS_A_DAY / 4:
                lived.deeds[people.act(name)] += 1
        if life.chance.random() < 0.1:
            life.trouble()
        life.bring_post()
        if life.chance.random() < 0.8:
            _worker(life)
        life.api.troubles.clear()
    return _sweep(life, swept) if life.chance.random() < SWEEPS else swept


def _worker(life: Life) -> None:
    """Turns until it is killed or finds nothing; an error of Stripe's ends its turn, as in the worker's loop."""
    try:
        while apply_due(life.shop):
            pass
        end_doubles(life.shop)
    except (Killed, StripeUnavailable, StripeRefused):
        return


def _sweep(life: Life, swept: datetime | None) -> datetime | None:
    try:
        now = life.shop.now()
        sweep(life.shop, swept)
    except (Killed, StripeUnavailable, StripeRefused):
        return swept
    return now


def _sell_a_new_version(life: Life) -> None:
    """Dearer, for whoever begins from now on."""
    with life.calm.engine.begin() as connection:
        add_version(connection, "pro", {"price_cents": 90_00}, actor="life")
    life.put_on_sale()


def _end_well(life: Life) -> None:
    """Nobody is killed any more, and Stripe answers; what the post lost stays lost."""
    life.fate.chance = 0.0
    life.api.troubles.clear()
    sweep(life.calm, None)
    for _ in range(2):
        while apply_due(life.calm):
            pass
        life.world.advance(life.world.now + 2 * DAY)  # what waited for its next try
    while apply_due(life.calm):
        pass
    while end_doubles(life.calm):
        pass
    sweep(life.calm, None)
    while apply_due(life.calm):
        pass
