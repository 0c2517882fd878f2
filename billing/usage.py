"""What an account has used, by day, model and key, from the roll-ups."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, null, select

from billing.tables import keys, usage_daily

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
    query = (
        select(usage_daily.c.day, *_sums())
        .where(usage_daily.c.account_id == account_id, usage_daily.c.day.between(first, last))
        .group_by(usage_daily.c.day)
        .order_by(usage_daily.c.day.desc())
    )
    return [DayUsed(row.day, *(int(row._mapping[name]) for name in _SUMS)) for row in connection.execute(query)]  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Part:
    """What one model, or one key, had of some days; `name` is the key's, None for a model and for a key that is gone."""

    of: str
    name: str | None
    fares: int
    pack_fares: int
    posted: int
    voided: int
    expired: int
    hangups: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def usage_by(
    connection: Connection, account_id: UUID, first: date, last: date, *, part: Literal["model", "key_id"]
) -> list[Part]:
    """Most fares first."""
    of = usage_daily.c[part]
    summed = (
        select(of.label("of"), *_sums())
        .where(usage_daily.c.account_id == account_id, usage_daily.c.day.between(first, last))
        .group_by(of)
        .subquery()
    )
    named = select(summed, keys.c.name) if part == "key_id" else select(summed, null().label("name"))
    joined = named.select_from(summed.outerjoin(keys, keys.c.id == summed.c.of) if part == "key_id" else summed)
    rows = connection.execute(joined.order_by(summed.c.fares.desc(), summed.c.of)).mappings()
    return [Part(str(row["of"]), row["name"], *(int(row[name]) for name in _SUMS)) for row in rows]


def used_on(connection: Connection, accounts: Collection[UUID], day: date) -> dict[UUID, int]:
    """Fares recorded on a day, of these accounts that have any."""
    query = (
        select(usage_daily.c.account_id, func.sum(usage_daily.c.fares))
        .where(usage_daily.c.account_id.in_(accounts), usage_daily.c.day == day)
        .group_by(usage_daily.c.account_id)
    )
    return {account_id: int(fares) for account_id, fares in connection.execute(query)}


def _sums() -> list[ColumnElement[int]]:
    return [func.sum(usage_daily.c[name]).label(name) for name in _SUMS]
