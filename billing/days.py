"""Days and months of billing: UTC, counted from 1970-01-01 in Valkey and in events, a `date` in PostgreSQL."""

from datetime import date, timedelta

EPOCH = date(1970, 1, 1)
DAY_MS = 86_400_000


def date_of(day: int) -> date:
    return EPOCH + timedelta(days=day)


def day_number(when: date) -> int:
    return (when - EPOCH).days


def month_number(day: int) -> int:
    """Of a day: months since 1970-01."""
    when = date_of(day)
    return (when.year - EPOCH.year) * 12 + when.month - 1


def day_of_id(request_id: str) -> int:
    """The first 48 bits of a UUIDv7 are milliseconds (RFC 9562); the key (day, id) is unique only if the id decides the day."""
    return int(request_id[:8] + request_id[9:13], 16) // DAY_MS
