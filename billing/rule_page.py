"""docs/billing-rule.md, written from the code that decides: `python -m billing.rule_page > docs/billing-rule.md`."""

import sys
from collections.abc import Iterator
from typing import assert_never

from billing.fare import fare
from billing.plans import DEFAULT_PLANS
from billing.verdict import FREE_HANGUPS_MIN, Outcome, Verdict, free_hangups, judge

# How a call that held a fare may end, in the words of the page; `Outcome` has no other.
ENDINGS: tuple[tuple[Outcome, str], ...] = (
    (Outcome.ANSWERED, "an answer, whole or ended by our own time limit after output began"),
    (Outcome.LEFT_AFTER_OUTPUT, "a stream that the client left after output began"),
    (Outcome.LEFT_BEFORE_OUTPUT, "the client left before output"),
    (Outcome.EMPTY_ANSWER, "an answer without a word in it, unless it names a stop of the client's own that ended it"),
    (Outcome.ENGINE_BROKE, "the engine failed, or broke its answer off, also after output"),
    (Outcome.ENGINE_REFUSED, "the engine refused the request: its 4xx is passed on"),
    (Outcome.TIMED_OUT, "our time was over before output, or the engine fell silent in its answer"),
    (Outcome.SHED, "no free slot in time, or too many waited already"),
    (Outcome.NO_CAPACITY, "no engine was there to take it"),
    (Outcome.CLIENT_ERROR, "a mistake in the request that shows only later, such as an image that can't be fetched"),
    (Outcome.INTERNAL_ERROR, "a mistake of ours"),
    (Outcome.UNKNOWN_ADMIT, "it was never known whether its fare was held"),
    (Outcome.GATEWAY_DIED, "our gateway was killed before it had settled the call, even if the answer had just been delivered"),
)

# What never holds a fare, or holds one of 0.
FREE = (
    ("4xx before the call runs (key, model, plan, size), our own 429s, 503 while Valkey is away", "nothing is held"),
    ("`GET` of any page: models, key, queue, health", "nothing is held"),
    (
        "the same call again with its `Idempotency-Key` (`docs/idempotency.md`)",
        "nothing more is held",
    ),
    ("tokens counted, nothing generated (`/v1/messages/count_tokens`)", f"at fare {fare(1, 0)}"),
    ("an answer beyond the day's quota, on a plan with a slow lane (`docs/capacity.md`)", "at fare 0"),
)

# What is asked for, and the parts of its fare: model fare, n x prompts, items, items for one fare.
EXAMPLES = (
    ("a chat, of any length", (1, 1, 1, 1)),
    ("a chat with `n: 3`", (1, 3, 1, 1)),
    ("a chat with a model of fare 4 and `n: 2`", (4, 2, 1, 1)),
    ("a completion of 5 prompts with `n: 2`", (1, 10, 1, 1)),
    ("100 embedding inputs, 100 for one fare", (1, 1, 100, 100)),
    ("101 embedding inputs, 100 for one fare", (1, 1, 101, 100)),
    ("1,000 documents to rank, 100 for one fare, with a model of fare 2", (2, 1, 1000, 100)),
)

_HEAD = """\
# What is billed

The fare of a call is known before it is sent: `model fare x n x prompts`, from the request alone, never from tokens. A model's
fare is 1 unless the admin says otherwise (`faregate models list`). `best_of` counts like `n`; a list of prompts counts each. Of
embeddings, rerank and score it is `model fare x ceil(items / items per fare)`: inputs, documents or pairs, 100 for one fare in
the catalogue (`items_per_fare` in `GET /v1/models`). It is held whole before the call runs, and settled once.

Written by `python -m billing.rule_page`, from the code that decides.
"""

_TAIL = """
Output is the first content, reasoning or tool call that is not empty, or the stop that ended the answer before any. The day is
UTC, and a call belongs to the day in which it arrived. Each row of the ledger says which of these it was (`faregate usage show`,
columns of `requests`: `verdict`, `reason`). A call given up as `expired` stays so, also when its gateway settles it later.
"""


def page() -> str:
    return "".join((_HEAD, *_endings(), *_free(), *_fares(), *_hang_ups(), _TAIL))


def _endings() -> Iterator[str]:
    yield "\n## How a call may end\n\n| how the call ends | in the ledger | billed |\n| --- | --- | --- |\n"
    for outcome, words in ENDINGS:
        verdict, reason = judge(outcome)
        yield f"| {words} | `{reason}` | {_billed(verdict)} |\n"


def _billed(verdict: Verdict) -> str:
    match verdict:
        case Verdict.POSTED:
            return "yes"
        case Verdict.VOIDED:
            return "no"
        case Verdict.EXPIRED:
            return "no (`expired`)"
        case Verdict.HANGUP:
            free = f"max({FREE_HANGUPS_MIN}, 10% of the day's quota)"
            return f"no, up to {free} a day; from then on yes, since each one took GPU time"
    assert_never(verdict)


def _free() -> Iterator[str]:
    yield "\n## What costs nothing\n\n| what | |\n| --- | --- |\n"
    for what, how in FREE:
        yield f"| {what} | {how} |\n"


def _fares() -> Iterator[str]:
    formula = "model fare x n x prompts x ceil(items / items per fare)"
    yield f"\n## Fares, worked out\n\n| what is asked for | {formula} | fare |\n| --- | --- | --- |\n"
    for what, (model_fare, n, items, per) in EXAMPLES:
        yield f"| {what} | {model_fare} x {n} x ceil({items:,} / {per}) | {fare(model_fare, n, items, per):,} |\n"


def _hang_ups() -> Iterator[str]:
    yield "\n## Hang-ups before output that are free, a day\n\n| plan, as it comes | quota | free |\n| --- | --- | --- |\n"
    for plan in DEFAULT_PLANS:
        allowed = free_hangups(plan.quota_per_day)
        quota = "unlimited" if plan.quota_per_day is None else f"{plan.quota_per_day:,}"
        yield f"| {plan.name} | {quota} | {'all' if allowed < 0 else f'{allowed:,}'} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
