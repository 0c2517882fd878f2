"""What an account used: by day, by model and by key, and all of it as a spreadsheet."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from billing.statements import DAILY, statement_rows
from gateway.console.answers import Answer, Download, Shown
from gateway.console.charts import bars
from gateway.console.visit import Visit

COUNTED = ("fares", "pack_fares", "posted", "voided", "expired", "prompt_tokens", "cached_tokens", "completion_tokens")


def show(visit: Visit) -> Answer:
    days = visit.days_asked()
    rows = [dict(zip(DAILY.columns, row, strict=True)) for row in _rows(visit, days)]
    by_day = _summed(rows, ("day",))
    facts = {
        "days": days,
        "total": _total(rows),
        "by_day": sorted(by_day.items(), reverse=True),
        "by_model": _most_first(_summed(rows, ("model",))),
        "by_key": _most_first(_summed(rows, ("key_id", "key_name"))),
        "chart": bars(
            [
                (f"{day:%-d %b}", one["posted"], one["voided"] + one["expired"], f"{day}: {one['posted']:,} billed")
                for (day,), one in sorted(by_day.items())
            ]
        ),
    }
    return Shown("usage.html", facts)


def download(visit: Visit) -> Answer:
    days = visit.days_asked()
    return Download(f"usage-{visit.first_of(days)}-{visit.today}.csv", DAILY.columns, _rows(visit, days))


def _rows(visit: Visit, days: int) -> Any:
    return statement_rows(visit.connection, DAILY, visit.account_id, visit.first_of(days), visit.today)


def _summed(rows: Sequence[dict[str, Any]], names: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, int]]:
    found: dict[tuple[Any, ...], dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTED, 0))
    for row in rows:
        sums = found[tuple(row[name] for name in names)]
        for counted in COUNTED:
            sums[counted] += row[counted]
    return found


def _total(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {counted: sum(row[counted] for row in rows) for counted in COUNTED}


def _most_first(found: dict[tuple[Any, ...], dict[str, int]]) -> list[tuple[tuple[Any, ...], dict[str, int]]]:
    return sorted(found.items(), key=lambda one: (-one[1]["fares"], str(one[0])))
