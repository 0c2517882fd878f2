"""What each class is given of a pool: by the plans in effect, read anew now and then; by the defaults until they can be read."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from backends.classes import DEFAULTS, Classes, ClassRules
from billing.plans import Plan, plan_from_row
from billing.reader import Reader, RecordUnavailable

# A new version of a plan reaches the queue within this time; the paid path never asks.
EVERY_SECONDS = 15.0

PLANS_IN_EFFECT = """
SELECT DISTINCT ON (code) * FROM plans
 WHERE effective_from <= now() AND (retired_at IS NULL OR retired_at > now())
 ORDER BY code, version DESC
"""


def classes_of(plans: Iterable[Plan], depth: int, wait_seconds: float) -> Classes:
    """`depth` and `wait_seconds` are the installation's own, for plans that say nothing and classes that no plan is in.

    Where several plans are of one class, it is given the most that any of them says.
    """
    rules = {name: replace(given, depth=depth, wait_seconds=wait_seconds) for name, given in DEFAULTS.items()}
    said: dict[str, ClassRules] = {}
    for plan in plans:
        terms, before = plan.queue, said.get(plan.service_class)
        new = ClassRules(
            floor_percent=terms.floor_percent,
            reserved=terms.reserved_slots,
            share_percent=terms.share_percent,
            depth=depth if terms.queue_depth is None else terms.queue_depth,
            wait_seconds=wait_seconds if terms.queue_seconds is None else terms.queue_seconds,
        )
        said[plan.service_class] = new if before is None else _most(before, new)
    return Classes.of(rules | said)


def _most(one: ClassRules, other: ClassRules) -> ClassRules:
    return ClassRules(
        floor_percent=max(one.floor_percent, other.floor_percent),
        reserved=max(one.reserved, other.reserved),
        share_percent=max(one.share_percent, other.share_percent),
        depth=max(one.depth, other.depth),
        wait_seconds=max(one.wait_seconds, other.wait_seconds),
    )


class Line(Protocol):
    """Of `backends.queue.Queue`, what plans change."""

    classes: Classes


async def follow_plans(queue: Line, reader: Reader, depth: int, wait_seconds: float) -> None:
    """Runs until cancelled. While PostgreSQL does not answer, what was read last stands."""
    while True:
        try:
            rows = await reader.ask(PLANS_IN_EFFECT, {})
        except RecordUnavailable:
            pass
        else:
            queue.classes = classes_of((plan_from_row(row) for row in rows), depth, wait_seconds)
        await asyncio.sleep(EVERY_SECONDS)
