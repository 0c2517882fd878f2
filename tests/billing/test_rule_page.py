"""docs/billing-rule.md says what the code decides, of every way a call may end."""

import re
from pathlib import Path

import pytest

from billing.rule_page import ENDINGS, EXAMPLES, page
from billing.verdict import Outcome, Verdict, judge

RULES = (Path(__file__).parents[2] / "docs" / "billing-rule.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_code_says() -> None:
    assert page() == RULES, "run: python -m billing.rule_page > docs/billing-rule.md"


def test_every_way_a_call_may_end_stands_on_it_once() -> None:
    assert sorted(outcome for outcome, _ in ENDINGS) == sorted(Outcome)


@pytest.mark.parametrize(("outcome", "words"), ENDINGS)
def test_each_ending_is_billed_as_it_is_judged(outcome: Outcome, words: str) -> None:
    row = next(line for line in RULES.splitlines() if f"| `{outcome.value}` |" in line)
    billed = row.split("|")[3].strip()
    assert row.startswith(f"| {words} |")
    assert {"yes": Verdict.POSTED, "no": Verdict.VOIDED, "no (`expired`)": Verdict.EXPIRED}.get(billed, Verdict.HANGUP) is judge(
        outcome
    )[0]


# By hand, from the published formula.
FARES = {
    "a chat, of any length": 1,
    "a chat with `n: 3`": 3,
    "a chat with a model of fare 4 and `n: 2`": 8,
    "a completion of 5 prompts with `n: 2`": 10,
    "100 embedding inputs, 100 for one fare": 1,
    "101 embedding inputs, 100 for one fare": 2,
    "1,000 documents to rank, 100 for one fare, with a model of fare 2": 20,
}


def test_the_fares_on_it_are_those_worked_out_by_hand() -> None:
    rows = [line.split("|") for line in RULES.splitlines() if re.search(r"\| \d+ x \d+ x ceil", line)]
    assert {cells[1].strip(): int(cells[3]) for cells in rows} == FARES
    assert {what for what, _ in EXAMPLES} == FARES.keys()


def test_free_hang_ups_stand_there_by_plan() -> None:
    for row in ("| Free | 60 | 20 |", "| Pro | 1,000 | 100 |", "| Premium | 5,000 | 500 |", "| Enterprise | unlimited | all |"):
        assert row in RULES
