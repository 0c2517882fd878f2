"""From the plans in effect to what each class is given of a pool."""

from dataclasses import replace

from backends.classes import DEFAULTS, ClassRules
from billing.plans import DEFAULT_PLANS, QueueTerms
from gateway.classes import classes_of

FREE, PRO, PREMIUM, ENTERPRISE = DEFAULT_PLANS


def test_the_default_plans_give_what_the_queue_has_by_itself() -> None:
    classes = classes_of(DEFAULT_PLANS, 256, 60.0)
    assert {name: classes.rules(name) for name in DEFAULTS} == dict(DEFAULTS)


def test_the_installations_own_depth_and_wait_stand_in_for_what_no_plan_says() -> None:
    for plans in ((), DEFAULT_PLANS):
        classes = classes_of(plans, 7, 9.0)
        assert {(classes.rules(name).depth, classes.rules(name).wait_seconds) for name in DEFAULTS} == {(7, 9.0)}


def test_a_class_of_several_plans_gets_the_most_that_one_of_them_says() -> None:
    one = replace(PRO, code="one", queue=QueueTerms(20, 1, 50, queue_depth=10, queue_seconds=90))
    two = replace(PRO, code="two", queue=QueueTerms(5, 3, 80, queue_depth=500, queue_seconds=None))
    classes = classes_of([FREE, one, two], 256, 60.0)
    assert classes.rules("pro") == ClassRules(20, 3, 80, 500, 90.0)
    assert classes.rules("free").share_percent == 15
    assert classes.kept_from("free") == 3
