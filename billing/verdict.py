"""Billable or not: the published rule, as one table from how a call ended to its verdict.

Posted: an answer, or a stream that the client itself left after output began. Voided: everything else, except that
hang-ups before output are posted beyond `free_hangups(quota)` a day, since they burn GPU time; the count is where the
quota is, so a hang-up is only an ask (`Verdict.HANGUP`) that the settle script decides.
"""

from enum import StrEnum


class Verdict(StrEnum):
    POSTED = "posted"
    VOIDED = "voided"
    EXPIRED = "expired"  # the gateway died; only the sweep gives it
    HANGUP = "hangup"  # an ask: posted or voided when it is settled, never in the ledger


class Outcome(StrEnum):
    """How a call that held a fare ended; the value is the reason in the ledger."""

    ANSWERED = "answered"  # to its end, or cut by a limit of ours after output began (`length`)
    LEFT_AFTER_OUTPUT = "left_after_output"
    LEFT_BEFORE_OUTPUT = "left_before_output"
    ENGINE_BROKE = "engine_broke"  # also after output: an answer that ends in an error is not one
    ENGINE_REFUSED = "engine_refused"
    EMPTY_ANSWER = "empty_answer"
    TIMED_OUT = "timed_out"
    SHED = "shed"
    NO_CAPACITY = "no_capacity"
    CLIENT_ERROR = "client_error"
    INTERNAL_ERROR = "internal_error"
    UNKNOWN_ADMIT = "unknown_admit"
    GATEWAY_DIED = "gateway_died"


_VERDICTS = {
    Outcome.ANSWERED: Verdict.POSTED,
    Outcome.LEFT_AFTER_OUTPUT: Verdict.POSTED,
    Outcome.LEFT_BEFORE_OUTPUT: Verdict.HANGUP,
    Outcome.ENGINE_BROKE: Verdict.VOIDED,
    Outcome.ENGINE_REFUSED: Verdict.VOIDED,
    Outcome.EMPTY_ANSWER: Verdict.VOIDED,
    Outcome.TIMED_OUT: Verdict.VOIDED,
    Outcome.SHED: Verdict.VOIDED,
    Outcome.NO_CAPACITY: Verdict.VOIDED,
    Outcome.CLIENT_ERROR: Verdict.VOIDED,
    Outcome.INTERNAL_ERROR: Verdict.VOIDED,
    Outcome.UNKNOWN_ADMIT: Verdict.VOIDED,
    Outcome.GATEWAY_DIED: Verdict.EXPIRED,
}


def judge(outcome: Outcome) -> tuple[Verdict, str]:
    """The verdict to settle with, and the reason that goes into the ledger."""
    return _VERDICTS[outcome], outcome.value


# Enough for a day of impatient clicking on the smallest plan.
FREE_HANGUPS_MIN = 20


def free_hangups(quota_per_day: int | None) -> int:
    """How many hang-ups before output a day are not billed: max(20, 10% of the quota); -1 means all, on an unlimited plan."""
    if quota_per_day is None:
        return -1
    return max(FREE_HANGUPS_MIN, quota_per_day // 10)
