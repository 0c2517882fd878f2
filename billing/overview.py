"""The whole installation in figures: what all accounts used, who used most, and what subscriptions bring; roll-ups alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import Connection, text

BY_DAY = """
SELECT day, count(DISTINCT account_id) AS accounts, sum(fares)::bigint AS fares, sum(posted)::bigint AS posted,
       sum(voided)::bigint AS voided, sum(expired)::bigint AS expired, sum(prompt_tokens)::bigint AS prompt_tokens,
       sum(cached_tokens)::bigint AS cached_tokens, sum(completion_tokens)::bigint AS completion_tokens
  FROM usage_daily WHERE day BETWEEN :first AND :last GROUP BY day ORDER BY day DESC
"""
BY_ACCOUNT = """
SELECT used.account_id, a.name, used.fares, used.calls, used.prompt_tokens, used.completion_tokens
  FROM (SELECT account_id, sum(fares)::bigint AS fares, sum(posted + voided + expired)::bigint AS calls,
               sum(prompt_tokens)::bigint AS prompt_tokens, sum(completion_tokens)::bigint AS completion_tokens
          FROM usage_daily WHERE day BETWEEN :first AND :last GROUP BY account_id ORDER BY 2 DESC, 1 LIMIT :limit) used
  LEFT JOIN accounts a ON a.id = used.account_id
 ORDER BY used.fares DESC, used.account_id
"""
# What is paid for, a month: a subscription that is past due still counts, one that is paused, unpaid or over does not.
REVENUE = """
SELECT coalesce(plan_code, '') AS plan_code, currency, count(*) AS subscriptions, sum(amount_cents)::bigint AS amount_cents
  FROM subscriptions WHERE ended_at IS NULL AND status IN ('active', 'past_due') AND NOT paused
 GROUP BY 1, 2 ORDER BY 4 DESC, 1
"""


@dataclass(frozen=True, slots=True)
class Day:
    """Of all accounts; fares are of billed calls, tokens of all."""

    day: date
    accounts: int
    fares: int
    posted: int
    voided: int
    expired: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Heavy:
    """One of the accounts that used most. `name` is None where the account is gone."""

    account_id: UUID
    name: str | None
    fares: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Revenue:
    """What a plan's subscriptions bring a month, in the smallest unit of their currency."""

    plan_code: str
    currency: str
    subscriptions: int
    amount_cents: int


def days_of_all(connection: Connection, first: date, last: date) -> Sequence[Day]:
    """Newest first."""
    return [Day(*row) for row in connection.execute(text(BY_DAY), {"first": first, "last": last})]


def heaviest(connection: Connection, first: date, last: date, *, limit: int = 10) -> Sequence[Heavy]:
    """Most fares first."""
    return [Heavy(*row) for row in connection.execute(text(BY_ACCOUNT), {"first": first, "last": last, "limit": limit})]


def monthly_revenue(connection: Connection) -> Sequence[Revenue]:
    """Most first."""
    return [Revenue(*row) for row in connection.execute(text(REVENUE))]
