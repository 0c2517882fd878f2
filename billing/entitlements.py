"""Which plan an account has, and until when: one pure function over what is known of it.

| what is known | its plan is given |
| --- | --- |
| the account's own plan | always; every other is beside it |
| a grant or a contract of an admin's, not revoked | from its beginning to its end |
| a trial | from its beginning to its end |
| a subscription that is `trialing` or `active` | until it is cancelled, or changed for another at the end of what is paid |
| one that is `past_due` | as well, for the days of grace since its oldest unpaid bill |
| one that is `incomplete`, `incomplete_expired`, `unpaid`, `paused` or `canceled`, or in a state that we don't know | never |

Of several at once the best is had: the higher class, then the larger quota; of equals the one that an admin gave, then the one
that is paid, then the trial. Times are milliseconds since 1970, and an end is the first instant without.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from billing.plans import SERVICE_CLASSES, Plan

Source = Literal["contract", "grant", "subscription", "trial", "account"]
SOURCES: tuple[Source, ...] = get_args(Source)
DAY_MS = 86_400_000
BEGINNING, FOREVER = 0, 2**62
_PAID = ("trialing", "active")
_UNPAID = "past_due"


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription by Stripe's words. `plan` is None for a price that sells none of ours; `ends_at`: cancelled by then;
    `pending`: what it sells from `pending_at` on."""

    status: str
    plan: Plan | None
    past_due_at: int | None = None
    ends_at: int | None = None
    pending: Plan | None = None
    pending_at: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A plan that something gives, from an instant until another."""

    plan: Plan
    source: Source
    from_at: int = BEGINNING
    until: int = FOREVER


@dataclass(frozen=True, slots=True)
class Term:
    """The plan that is had until `until`, and what gives it."""

    plan: Plan
    source: Source
    until: int = FOREVER


def claims_of(subscription: Subscribed, grace_ms: int) -> Iterator[Claim]:
    """What a subscription gives."""
    ends = FOREVER if subscription.ends_at is None else subscription.ends_at
    if subscription.status == _UNPAID and subscription.past_due_at is not None:
        ends = min(ends, subscription.past_due_at + grace_ms)
    elif subscription.status not in _PAID:
        return
    changes = ends if subscription.pending_at is None else min(ends, subscription.pending_at)
    if subscription.plan is not None:
        yield Claim(subscription.plan, "subscription", until=changes)
    if subscription.pending is not None and changes < ends:
        yield Claim(subscription.pending, "subscription", changes, ends)


def entitled(own: Plan, claims: Sequence[Claim], at: int) -> Term:
    """At one instant. `until` is the first one that may have another plan."""
    best = max((Claim(own, "account"), *(claim for claim in claims if claim.from_at <= at < claim.until)), key=_rank)
    edges = (edge for claim in claims for edge in (claim.from_at, claim.until) if edge > at)
    return Term(best.plan, best.source, min(edges, default=FOREVER))


def schedule(own: Plan, claims: Sequence[Claim]) -> tuple[Term, ...]:
    """All of time, in order: the last one has no end."""
    terms = [entitled(own, claims, BEGINNING)]
    while terms[-1].until < FOREVER:
        following = entitled(own, claims, terms[-1].until)
        if (following.plan, following.source) == (terms[-1].plan, terms[-1].source):
            terms.pop()
        terms.append(following)
    return tuple(terms)


def _rank(claim: Claim) -> tuple[int, float, int, int, str]:
    plan = claim.plan
    quota = float("inf") if plan.quota_per_day is None else plan.quota_per_day
    return -SERVICE_CLASSES.index(plan.service_class), quota, -SOURCES.index(claim.source), plan.version, plan.code
