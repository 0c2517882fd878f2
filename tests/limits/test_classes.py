"""From the plans in effect to what each class is given of a pool."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from backends.classes import DEFAULT_CLASSES, DEFAULTS, Classes, ClassRules
from billing.database import open_engine
from billing.plan_versions import add_version
from billing.plans import DEFAULT_PLANS, QueueTerms
from billing.reader import Reader
from billing.seed import seed
from gateway import classes
from gateway.classes import classes_of, follow_plans
from tests.support.gateway import wait_for

FREE, PRO, PREMIUM, ENTERPRISE = DEFAULT_PLANS


def test_the_default_plans_give_what_the_queue_has_by_itself() -> None:
    found = classes_of(DEFAULT_PLANS, 256, 60.0)
    assert {name: found.rules(name) for name in DEFAULTS} == dict(DEFAULTS)


def test_the_installations_own_depth_and_wait_stand_in_for_what_no_plan_says() -> None:
    for plans in ((), DEFAULT_PLANS):
        found = classes_of(plans, 7, 9.0)
        assert {(found.rules(name).depth, found.rules(name).wait_seconds) for name in DEFAULTS} == {(7, 9.0)}


def test_a_class_of_several_plans_gets_the_most_that_one_of_them_says() -> None:
    one = replace(PRO, code="one", queue=QueueTerms(20, 1, 50, queue_depth=10, queue_seconds=90))
    two = replace(PRO, code="two", queue=QueueTerms(5, 3, 80, queue_depth=500, queue_seconds=None))
    found = classes_of([FREE, one, two], 256, 60.0)
    assert found.rules("pro") == ClassRules(20, 3, 80, 500, 90.0)
    assert found.rules("free").share_percent == 15
    assert found.kept_from("free") == 3


@dataclass
class Line:
    """Of a queue, what plans change."""

    classes: Classes = DEFAULT_CLASSES


async def test_a_new_version_of_a_plan_reaches_the_queue(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "EVERY_SECONDS", 0.05)
    seed(database_url)
    reader, line = Reader(database_url, connections=1), Line()
    await reader.open()
    following = asyncio.create_task(follow_plans(line, reader, 99, 9.0))
    try:
        await asyncio.to_thread(wait_for, lambda: line.classes.rules("premium").depth == 99)
        for changes in ({"reserved_slots": 2}, {"reserved_slots": 3, "queue_depth": 5}):
            await asyncio.to_thread(new_version, database_url, changes)
        await asyncio.to_thread(wait_for, lambda: line.classes.rules("premium").reserved == 3)
        assert line.classes.rules("premium") == ClassRules(10, 3, 100, 5, 9.0)
    finally:
        following.cancel()
        await reader.close()


def new_version(database_url: str, changes: dict[str, int]) -> None:
    engine = open_engine(database_url)
    with engine.begin() as connection:
        add_version(connection, "premium", changes, actor="test")
    engine.dispose()
