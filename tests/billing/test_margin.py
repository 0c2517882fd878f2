"""Margin: the three examples of docs/margin.md, worked out by hand, and the edges of each figure."""

from dataclasses import replace
from datetime import date
from uuid import UUID

import pytest

from billing.concerns import concerns, new_concerns
from billing.dearest import dearest_accounts
from billing.margin import Assumed, Margin, Pool, margin, typical
from billing.money import dollars, half_up
from billing.plans import DEFAULT_PLANS
from billing.pool_use import balance, pool_use
from billing.worked import Worked

FREE, PRO, PREMIUM, ENTERPRISE = DEFAULT_PLANS
# A GPU of $3.60 an hour with 36 slots: $0.10 a slot-hour. Eight of $2.50 with 40: $0.50 a slot-hour.
SMALL = Pool("small", "free", 36, 360)
LARGE = Pool("large", "pro", 40, 2000)
HOUR = 3_600_000


def did(plan: str, model: str, *, account: str = "acme", calls: int = 100, fares: int = 100, slot_ms: int = 0) -> Worked:
    return Worked(
        account_id=UUID(int=int.from_bytes(account.encode())), account=account, plan_code=plan, plan_version=1, model=model,
        first_day=date(2026, 11, 1), calls=calls, fares=fares, slot_ms=slot_ms, prompt_tokens=calls * 1000,
        cached_tokens=calls * 400, completion_tokens=calls * 250,
    )  # fmt: skip


def assumed(*pools: Pool, busy_percent: int = 100, days: int = 30) -> Assumed:
    return Assumed(pools or (SMALL, LARGE), busy_percent, days)


def pro(*rows: Worked, given: Assumed | None = None) -> Margin:
    return margin(PRO, rows, 1, given or assumed())


def test_example_1_a_pro_account_with_short_chats_pays_for_itself() -> None:
    """600 calls a day of 6 s on the small model: 18,000 x 6 s = 30 slot-hours x $0.10 = $3; at 60% busy $5. A call: $5 / 18,000.

    Whole quota: 30,000 x 6 s = 50 slot-hours = $5; at 60% $8.33. Loses above 80 / 8.333 = 960% of the quota: never.
    """
    row = did("pro", "small", calls=18_000, fares=18_000, slot_ms=18_000 * 6_000)
    sheet = pro(row, given=assumed(busy_percent=60))
    assert (sheet.typical_micros, sheet.full_micros) == (5_000_000, 8_333_333)
    assert sheet.loses_from_permille == 9600
    assert concerns(sheet) == []
    (one,) = typical([row], assumed(busy_percent=60))
    assert (one.slot_ms, one.micros_a_call, one.prompt_tokens, one.completion_tokens) == (6_000, 278, 1000, 250)


def test_example_2_a_pro_account_with_long_answers_loses_above_64_percent_of_its_quota() -> None:
    """200 calls a day of 30 s on the large model: 6,000 x 30 s = 50 slot-hours x $0.50 = $25.

    Whole quota: 30,000 x 30 s = 250 slot-hours = $125, more than $80: it loses above 80 / 125 = 64%.
    """
    sheet = pro(did("pro", "large", calls=6_000, fares=6_000, slot_ms=6_000 * 30_000))
    assert (sheet.typical_micros, sheet.full_micros, sheet.loses_from_permille) == (25_000_000, 125_000_000, 640)
    (full,) = concerns(sheet)
    assert (full.kind, full.loss_micros) == ("full", 45_000_000)
    assert full.words == "an account that uses more than 64% of the quota loses money: all of it costs $125.00"


def test_example_3_what_the_fleet_carries_and_what_a_plan_may_hold() -> None:
    """Worst of Pro: 5 slots of the large model, 3,600 slot-hours x $0.50 = $1,800 a month.

    40 slots are 960 slot-hours a day. 200 calls of 30 s are 1 2/3 a day: 576 accounts. A whole quota, 1,000 x 30 s, is 8 1/3:
    115 accounts. All their slots at once: (36 + 40) / 5, 15 accounts. Half busy, it is half of the first two.
    """
    row = did("pro", "large", calls=6_000, fares=6_000, slot_ms=6_000 * 30_000)
    sheet = pro(row)
    assert sheet.worst_micros == 1_800_000_000
    assert (sheet.carries_typical, sheet.carries_full, sheet.carries_worst) == (576, 115, 15)
    half = pro(row, given=assumed(busy_percent=50))
    assert (half.carries_typical, half.carries_full, half.carries_worst) == (288, 57, 15)


def test_the_tightest_pool_says_how_many_accounts_fit() -> None:
    """A day of one account: 10 slot-hours of 864 on the small model, 1 of 960 on the large one."""
    rows = (did("pro", "small", slot_ms=300 * HOUR), did("pro", "large", slot_ms=30 * HOUR))
    assert pro(*rows).carries_typical == 86


def test_slots_beyond_the_dearest_pool_are_held_in_the_next_one() -> None:
    """15 slots: 4 x $0.50 and 11 x $0.10 are $3.10 an hour."""
    given = assumed(SMALL, replace(LARGE, slots=4, cents_per_hour=200))
    assert margin(PREMIUM, [], 0, given).worst_micros == 3_100_000 * 720
    assert margin(FREE, [], 0, given).worst_micros == 2 * 100_000 * 720


def test_without_a_limit_of_its_own_a_plan_may_hold_every_slot() -> None:
    sheet = margin(replace(ENTERPRISE, price_cents=100_00), [], 0, assumed())
    assert sheet.worst_micros == (3_600_000 + 20_000_000) * 720
    assert [concern.kind for concern in concerns(sheet)] == ["unlimited"]
    assert (sheet.full_micros, sheet.loses_from_permille, sheet.carries_worst) == (None, None, None)


def test_failed_calls_cost_too_and_bring_no_fare() -> None:
    """100 fares cost what 200 calls held: 200 x 36 s = 2 slot-hours, $0.20; 30,000 fares are $60."""
    assert pro(did("pro", "small", calls=200, fares=100, slot_ms=200 * 36_000)).full_micros == 60_000_000
    assert pro(did("pro", "small", calls=200, fares=0, slot_ms=200 * 36_000)).full_micros is None


def test_a_plan_that_nobody_has_used_is_measured_by_everybodys_calls_to_its_models() -> None:
    rows = (did("premium", "small", slot_ms=100 * 36_000), did("premium", "large", slot_ms=100 * 36_000))
    sheet = margin(FREE, rows, 0, assumed())
    assert (sheet.basis, sheet.calling, sheet.full_micros) == ("all", 0, 60 * 30 * 1000)
    assert margin(FREE, [], 0, assumed()).basis == "none"


def test_the_dearest_model_is_the_one_whose_fares_cost_most_by_everybodys_calls() -> None:
    rows = (did("pro", "small", slot_ms=100 * 36_000), did("premium", "large", slot_ms=100 * 36_000))
    sheet = pro(*rows)
    assert (sheet.dearest_model, sheet.dearest_micros, sheet.full_micros) == ("large", 30_000 * 5_000, 30_000 * 1_000)
    (concern,) = concerns(sheet)
    assert (concern.kind, concern.words) == ("dearest", "the whole quota on large alone costs $150.00 a month")


def test_calls_on_an_accounts_own_replicas_are_no_plans_cost_but_their_whole_time_is_the_accounts() -> None:
    own = Pool("large", "pro", 8, 2000, dedicated_to="acme")
    given = assumed(SMALL, LARGE, own)
    rows = [did("pro", "large", slot_ms=8 * 36 * HOUR), did("pro", "small", account="bob", slot_ms=HOUR)]
    assert margin(PRO, rows, 2, given).typical_micros == 100_000
    acme, bob = dearest_accounts(rows, {("pro", 1): PRO}, given)
    assert (acme.account, acme.cost_micros) == ("acme", 20_000_000 * 720)
    assert (bob.cost_micros, bob.paid_micros, bob.left_micros) == (100_000, 80_000_000, 79_900_000)
    assert [(use.pool.dedicated_to, use.busy_permille) for use in pool_use(rows, given)] == [("", 0), ("", 0), ("acme", 50)]


def test_the_ten_dearest_come_dearest_first_and_pay_for_the_days_that_were_read() -> None:
    rows = [did("pro", "small", account=f"a{number:02}", slot_ms=number * HOUR) for number in range(12)]
    found = dearest_accounts(rows, {("pro", 1): PRO}, assumed(days=3))
    assert [dear.account for dear in found] == [f"a{number:02}" for number in range(11, 1, -1)]
    assert {dear.paid_micros for dear in found} == {8_000_000}


def test_a_model_without_a_pool_costs_nothing_and_one_without_a_price_is_said_to_have_none() -> None:
    assert pro(did("pro", "gone", slot_ms=HOUR)).basis == "none"
    (use,) = pool_use([], assumed(Pool("small", "free", 4, None)))
    assert (use.slot_hour_micros, use.month_micros) == (None, None)


def test_a_month_of_the_fleet_is_paid_for_by_all_plans_together() -> None:
    """2 x $80 + 1 x $350 against ($3.60 + $20) x 720."""
    whole = balance(DEFAULT_PLANS, {("pro", 1): 2, ("premium", 1): 1, ("free", 1): 9}, [SMALL, LARGE])
    assert (whole.revenue_micros, whole.cost_micros, whole.left_micros) == (510_000_000, 16_992_000_000, -16_482_000_000)


def test_a_change_is_measured_by_what_it_makes_worse() -> None:
    rows = (did("pro", "large", calls=6_000, fares=6_000, slot_ms=6_000 * 30_000),)
    before = pro(*rows)
    assert new_concerns(before, before) == []
    doubled = margin(replace(PRO, quota_per_day=2_000), rows, 1, assumed())
    assert [(one.kind, one.loss_micros) for one in new_concerns(before, doubled)] == [("full", 170_000_000)]
    assert new_concerns(doubled, before) == []
    cheap = margin(replace(PRO, price_cents=20_00), rows, 1, assumed())
    assert {one.kind for one in new_concerns(before, cheap)} == {"typical", "full"}


def test_a_free_plan_and_one_whose_price_is_agreed_raise_no_concern() -> None:
    row = did("free", "small", slot_ms=900 * HOUR)
    assert concerns(margin(FREE, [row], 1, assumed())) == []
    assert margin(FREE, [row], 1, assumed()).loses_from_permille == 0
    assert concerns(margin(ENTERPRISE, [did("enterprise", "large", slot_ms=9 * HOUR)], 1, assumed())) == []


@pytest.mark.parametrize(
    ("micros", "digits", "written"),
    [
        (0, 2, "$0.00"),
        (4_999, 2, "$0.00"),
        (5_000, 2, "$0.01"),
        (-4_999, 2, "$0.00"),
        (-5_000, 2, "-$0.01"),
        (1_234_567_890, 2, "$1,234.57"),
        (2_667, 6, "$0.002667"),
        (999_500_000, 0, "$1,000"),
    ],
)
def test_micro_dollars_are_written_rounded_half_up(micros: int, digits: int, written: str) -> None:
    assert dollars(micros, digits=digits) == written


@pytest.mark.parametrize(
    ("over", "under", "whole"), [(1, 2, 1), (1, 3, 0), (2, 3, 1), (5, 10, 1), (0, 7, 0), (-1, 2, 0), (-3, 4, -1)]
)
def test_half_up_is_the_nearest_and_of_two_the_larger(over: int, under: int, whole: int) -> None:
    assert half_up(over, under) == whole
