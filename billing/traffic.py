"""What an account's billed calls carried, by model: from its own rows of the ledger, found by their index."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import Connection, text

TRAFFIC = text(
    """
SELECT model, count(*) AS calls, sum(fare)::bigint AS fares,
       count(*) FILTER (WHERE prompt_tokens IS NULL OR completion_tokens IS NULL) AS uncounted,
       coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
       coalesce(sum(least(cached_tokens, prompt_tokens)), 0)::bigint AS cached_tokens,
       coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens
  FROM requests
 WHERE account_id = :account AND day BETWEEN :first AND :last AND verdict = 'posted'
 GROUP BY model ORDER BY model
"""
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """`cached_tokens` are a part of `prompt_tokens`; `uncounted` calls are those whose engine told no tokens."""

    model: str
    calls: int
    fares: int
    uncounted: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def traffic(connection: Connection, account_id: UUID, first: date, last: date) -> list[Traffic]:
    rows = connection.execute(TRAFFIC, {"account": account_id, "first": first, "last": last})
    return [Traffic(**row._mapping) for row in rows]  # noqa: SLF001 - documented under this name
