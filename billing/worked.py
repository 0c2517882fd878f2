"""What the GPUs did for whom: slot time, tokens and fares by account and model, from the ledger's rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from billing.entitlements import Term

# A slot is held from the grant to the end: the whole time less the wait. What never reached a replica cost nothing; of a call
# whose gateway died nobody knows the time, and the house bears it. Tokens and time are of all calls, fares of posted ones.
_WORKED = text(
    """
WITH summed AS (
  SELECT account_id, model, min(day) AS first_day, count(*) AS calls,
         coalesce(sum(fare) FILTER (WHERE verdict = 'posted'), 0)::bigint AS fares,
         sum(greatest(total_ms - coalesce(queue_ms, 0), 0))::bigint AS slot_ms,
         coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
         coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
         coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens
    FROM requests
   WHERE day BETWEEN :first AND :last AND replica IS NOT NULL AND total_ms IS NOT NULL
   GROUP BY account_id, model
)
SELECT s.account_id, a.name AS account, s.model, s.first_day, s.calls, s.fares, s.slot_ms,
       s.prompt_tokens, s.cached_tokens, s.completion_tokens
  FROM summed s JOIN accounts a ON a.id = s.account_id
 ORDER BY a.name, s.model
"""
)


@dataclass(frozen=True, slots=True)
class Worked:
    """One account's calls to one model; the plan is what the account has now. `slot_ms` is how long they held slots."""

    account_id: UUID
    account: str
    plan_code: str
    plan_version: int
    model: str
    first_day: date
    calls: int
    fares: int
    slot_ms: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @property
    def plan(self) -> tuple[str, int]:
        return self.plan_code, self.plan_version


def worked(connection: Connection, first: date, last: date, terms: Mapping[UUID, Term]) -> list[Worked]:
    """By account's name and model. Reads every row of these days: for administration, never for a page that people wait for.

    `terms`: what each account has now.
    """
    rows: Sequence[Row[Any]] = connection.execute(_WORKED, {"first": first, "last": last}).all()
    return [
        Worked(**row._mapping, plan_code=plan.code, plan_version=plan.version)  # noqa: SLF001 - documented under this name
        for row in rows
        for plan in [terms[row.account_id].plan]
    ]


def accounts_on_plans(terms: Iterable[Term]) -> Counter[tuple[str, int]]:
    """How many accounts have each version of a plan, whether they call or not."""
    return Counter((term.plan.code, term.plan.version) for term in terms)
