"""What an account has used, by day, from the roll-ups."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import Connection, func, select

from billing.tables import usage_daily

_SUMS = ("fares", "pack_fares", "posted", "voided", "expired", "hangups", "prompt_tokens", "cached_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class DayUsed:
    """`fares` are those of posted calls, `pack_fares` those that packs paid, apart from them; tokens are of all calls, as the
    engines counted them."""

    day: date
    fares: int
    pack_fares: int
    posted: int
    voided: int
    expired: int
    hangups: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def usage_by_day(connection: Connection, account_id: UUID, first: date, last: date) -> list[DayUsed]:
    """Newest first; a day without a call is left out."""
    sums = [func.sum(usage_daily.c[name]).label(name) for name in _SUMS]
    query = (
        select(usage_daily.c.day, *sums)
        .where(usage_daily.c.account_id == account_id, usage_daily.c.day.between(first, last))
        .group_by(usage_daily.c.day)
        .order_by(usage_daily.c.day.desc())
    )
    return [DayUsed(row.day, *(int(row._mapping[name]) for name in _SUMS)) for row in connection.execute(query)]  # noqa: SLF001


def used_on(connection: Connection, accounts: Collection[UUID], day: date) -> dict[UUID, int]:
    """Fares recorded on a day, of these accounts that have any."""
    query = (
        select(usage_daily.c.account_id, func.sum(usage_daily.c.fares))
        .where(usage_daily.c.account_id.in_(accounts), usage_daily.c.day == day)
        .group_by(usage_daily.c.account_id)
    )
    return {account_id: int(fares) for account_id, fares in connection.execute(query)}
