"""The pure rules of money: plans as they are sold, the fare, and what is billed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.fare import FARE_MAX, FareOutOfBounds, fare
from billing.plans import DEFAULT_PLANS, Envelope, plan_from_row, row_from_plan
from billing.verdict import Outcome, Verdict, free_hangups, judge

PLANS = {plan.code: plan for plan in DEFAULT_PLANS}


@pytest.mark.parametrize(
    ("code", "cents", "quota", "service_class", "tiers"),
    [
        ("free", 0, 60, "free", {"free"}),
        ("pro", 8000, 1000, "pro", {"free", "pro"}),
        ("premium", 35000, 5000, "premium", {"free", "pro", "premium"}),
        ("enterprise", None, None, "enterprise", {"free", "pro", "premium", "enterprise"}),
    ],
)
def test_plans_are_what_is_sold(code: str, cents: int | None, quota: int | None, service_class: str, tiers: set[str]) -> None:
    plan = PLANS[code]
    assert (plan.price_cents, plan.quota_per_day) == (cents, quota)
    assert (str(plan.service_class), set(plan.tiers)) == (service_class, tiers)
    assert plan_from_row(row_from_plan(plan)) == plan


@pytest.mark.parametrize(
    ("code", "envelope"),
    [
        ("free", Envelope(32_768, 2048, 2, 10, 1, 1)),
        ("pro", Envelope(None, 16_384, 5, 120, 4, 8)),
        ("premium", Envelope(None, 32_768, 15, 300, 8, 16)),
        ("enterprise", Envelope(None, None, None, None, 8, 16)),
    ],
)
def test_envelopes_are_what_is_published(code: str, envelope: Envelope) -> None:
    assert PLANS[code].envelope == envelope


def test_no_plan_begins_with_a_slow_lane_or_a_reserve_and_floors_leave_room() -> None:
    assert {plan.queue.beyond_quota for plan in DEFAULT_PLANS} == {"refuse"}
    assert {plan.queue.reserved_slots for plan in DEFAULT_PLANS} == {0}
    assert sum(plan.queue.floor_percent for plan in DEFAULT_PLANS) < 50
    assert PLANS["free"].queue.share_percent == 15


def test_an_input_limit_is_checked_in_bytes() -> None:
    assert PLANS["free"].envelope.input_bytes_max == 131_072
    assert PLANS["pro"].envelope.input_bytes_max is None


@given(model=st.integers(1, 10), n=st.integers(1, 8), items=st.integers(1, 5000), per=st.integers(1, 100))
def test_the_fare_is_the_published_formula(model: int, n: int, items: int, per: int) -> None:
    got = fare(model, n, items, per)
    boxes = got // (model * n)
    assert got == model * n * boxes
    assert (boxes - 1) * per < items <= boxes * per


def test_a_chat_is_one_fare() -> None:
    assert fare(1) == 1


def test_what_generates_nothing_costs_nothing() -> None:
    assert fare(7, 0) == 0


@pytest.mark.parametrize("parts", [(0,), (1, -1), (1, 1, 0), (1, 1, 1, 0), (-1,), (1, -5), (1, FARE_MAX + 1), (2, 1, FARE_MAX)])
def test_a_fare_out_of_bounds_is_refused(parts: tuple[int, ...]) -> None:
    with pytest.raises(FareOutOfBounds):
        fare(*parts)


def test_billed_are_answers_and_streams_left_after_output_and_nothing_else() -> None:
    verdicts = {outcome: judge(outcome)[0] for outcome in Outcome}
    posted = {outcome for outcome, verdict in verdicts.items() if verdict is Verdict.POSTED}
    assert posted == {Outcome.ANSWERED, Outcome.LEFT_AFTER_OUTPUT}
    assert verdicts[Outcome.LEFT_BEFORE_OUTPUT] is Verdict.HANGUP
    assert verdicts[Outcome.GATEWAY_DIED] is Verdict.EXPIRED
    assert all(judge(outcome)[1] == outcome.value for outcome in Outcome)


@pytest.mark.parametrize(("quota", "free"), [(0, 20), (60, 20), (209, 20), (210, 21), (1000, 100), (5000, 500), (None, -1)])
def test_hang_ups_are_free_up_to_a_tenth_of_the_quota_and_at_least_twenty(quota: int | None, free: int) -> None:
    assert free_hangups(quota) == free
