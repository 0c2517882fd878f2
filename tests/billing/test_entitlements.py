"""Which plan is had: each state of the table, ends to the millisecond, and what must hold of any facts in any order."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.entitlements import DAY_MS, FOREVER, SOURCES, Claim, Subscribed, Term, claims_of, entitled, schedule
from billing.plans import DEFAULT_PLANS, SERVICE_CLASSES, TRIAL_PLAN, Plan

FREE, PRO, PREMIUM, ENTERPRISE = DEFAULT_PLANS
NOW, GRACE = 1_796_083_200_000, 7 * DAY_MS


def had(subscription: Subscribed, at: int = NOW) -> str:
    return entitled(FREE, [*claims_of(subscription, GRACE)], at).plan.code


@pytest.mark.parametrize(
    ("status", "plan"),
    [
        ("trialing", "pro"), ("active", "pro"), ("past_due", "free"), ("incomplete", "free"), ("incomplete_expired", "free"),
        ("unpaid", "free"), ("paused", "free"), ("canceled", "free"), ("something new of Stripe's", "free"),
    ],
)  # fmt: skip
def test_a_subscriptions_state_decides(status: str, plan: str) -> None:
    assert had(Subscribed(status, PRO)) == plan


def test_an_unpaid_bill_is_borne_for_the_days_of_grace_to_the_millisecond() -> None:
    late = Subscribed("past_due", PRO, past_due_at=NOW - GRACE)
    assert (had(late, NOW - 1), had(late, NOW)) == ("pro", "free")


def test_a_cancelled_one_ends_with_what_is_paid_and_a_change_comes_with_it() -> None:
    leaving = Subscribed("active", PREMIUM, ends_at=NOW)
    assert (had(leaving, NOW - 1), had(leaving, NOW)) == ("premium", "free")
    changing = Subscribed("active", PREMIUM, pending=PRO, pending_at=NOW)
    assert (had(changing, NOW - 1), had(changing, NOW), had(changing, NOW + 900 * DAY_MS)) == ("premium", "pro", "pro")
    both = replace(changing, ends_at=NOW + 5)
    assert (had(both, NOW + 4), had(both, NOW + 5)) == ("pro", "free")


def test_a_price_that_sells_no_plan_of_ours_gives_none() -> None:
    assert had(Subscribed("active", None)) == "free"


def test_a_trial_is_better_than_free_and_gives_way_to_what_is_bought() -> None:
    trial = Claim(TRIAL_PLAN, "trial", NOW - DAY_MS, NOW + DAY_MS)
    assert entitled(FREE, [trial], NOW) == Term(TRIAL_PLAN, "trial", NOW + DAY_MS)
    bought = [trial, *claims_of(Subscribed("active", PRO), GRACE)]
    assert entitled(FREE, bought, NOW).source == "subscription"
    assert schedule(FREE, [trial]) == (
        Term(FREE, "account", NOW - DAY_MS), Term(TRIAL_PLAN, "trial", NOW + DAY_MS), Term(FREE, "account")
    )  # fmt: skip


def test_a_new_version_of_a_plan_is_not_forced_on_who_has_the_old_one() -> None:
    assert entitled(FREE, [*claims_of(Subscribed("active", replace(PRO, version=1)), GRACE)], NOW).plan.version == 1


instants = st.integers(1, 40)
plans = st.sampled_from((*DEFAULT_PLANS, TRIAL_PLAN, replace(PRO, version=2, quota_per_day=1500)))
claims = st.builds(
    lambda plan, source, begins, lasts: Claim(plan, source, begins, FOREVER if lasts is None else begins + lasts),
    plans, st.sampled_from(SOURCES[:-1]), instants, st.none() | instants,
)  # fmt: skip


def worth(plan: Plan) -> tuple[int, float]:
    quota = float("inf") if plan.quota_per_day is None else plan.quota_per_day
    return -SERVICE_CLASSES.index(plan.service_class), quota


@given(plans, st.lists(claims, max_size=6), st.randoms(use_true_random=False))
def test_the_schedule_says_at_each_instant_what_is_had_then_in_whatever_order_facts_come(
    own: Plan, facts: list[Claim], chance: Random
) -> None:
    terms = schedule(own, facts)
    assert terms[-1].until == FOREVER
    assert all(earlier.until < later.until for earlier, later in pairwise(terms))
    assert all((earlier.plan, earlier.source) != (later.plan, later.source) for earlier, later in pairwise(terms))
    shuffled = [*facts]
    chance.shuffle(shuffled)
    assert schedule(own, shuffled) == terms
    for at in range(85):
        term = next(term for term in terms if at < term.until)
        now = entitled(own, facts, at)
        assert (term.plan, term.source) == (now.plan, now.source)


@given(plans, st.lists(claims, max_size=6), claims)
def test_another_fact_never_takes_anything_away_and_gives_nothing_after_its_end(
    own: Plan, facts: list[Claim], more: Claim
) -> None:
    for at in range(85):
        before, after = entitled(own, facts, at), entitled(own, [*facts, more], at)
        assert worth(after.plan) >= worth(before.plan) >= worth(own)
        if not more.from_at <= at < more.until:
            assert (after.plan, after.source) == (before.plan, before.source)
