"""What a call becomes beyond its plan's quota."""

from dataclasses import replace

import pytest

from backends.dedicated import Way
from billing.plans import DEFAULT_PLANS, QueueTerms
from gateway.api.order import Order, on_slow_lane
from gateway.limits.policy import Numbers
from gateway.limits.refusals import QuotaUsedUp, Scope
from models.catalogue import Catalogue

PRO = DEFAULT_PLANS[1]
SLOW = replace(PRO, queue=QueueTerms(beyond_quota="slow"))
LIMITS = Numbers(quota=10, key_quota=8, rpm=120, concurrency=5)
ORDER = Order(
    Catalogue.load().resolve("smollm2-135m-instruct"), [Way("m", [])], 3, None, None,
    account="a", key="k", service_class="pro", numbers=LIMITS, ttft_target_ms=3000,
)  # fmt: skip


def spent(scope: Scope = "account") -> QuotaUsedUp:
    return QuotaUsedUp(scope, 10, 9, 0)


def test_it_runs_in_class_batch_at_no_fare_under_the_limits_that_are_left() -> None:
    slow = on_slow_lane(ORDER, SLOW, spent())
    assert slow is not None
    assert (slow.fare, slow.service_class, slow.ttft_target_ms) == (0, "batch", None)
    assert slow.numbers == replace(LIMITS, quota=-1, key_quota=5)
    assert on_slow_lane(slow, SLOW, spent()) is None  # there is no lane beyond the slow one


@pytest.mark.parametrize(("is_slow", "scope", "key_quota"), [(False, "account", 8), (True, "key", 8), (True, "account", 2)])
def test_it_is_refused_where_the_plan_has_no_lane_or_the_key_has_no_room(is_slow: bool, scope: Scope, key_quota: int) -> None:
    order = replace(ORDER, numbers=replace(LIMITS, key_quota=key_quota))
    assert on_slow_lane(order, SLOW if is_slow else PRO, spent(scope)) is None
