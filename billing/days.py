"""Days of billing: UTC, counted from 1970-01-01 in Valkey and in events, a `date` in PostgreSQL."""

from datetime import date, timedelta

EPOCH = date(1970, 1, 1)
DAY_MS = 86_400_000


def date_of(day: int) -> date:
    return EPOCH + timedelta(days=day)


def day_number(when: date) -> int:
    return (when - EPOCH).days
