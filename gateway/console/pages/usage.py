"""What an account used: by day, by model and by key, and all of it as a spreadsheet."""

from itertools import islice

from billing.statements import DAILY, statement_rows
from billing.usage import DayUsed, usage_by, usage_by_day
from gateway.console.answers import Answer, Download, Shown
from gateway.console.charts import Chart, bars
from gateway.console.visit import Visit

# A line is a day, a key and a model; more of them at once would be held in memory for one browser.
LINES_MAX = 50_000


def show(visit: Visit) -> Answer:
    return _page(visit, None)


def download(visit: Visit) -> Answer:
    days = visit.days_asked()
    first = visit.first_of(days)
    rows = list(islice(statement_rows(visit.connection, DAILY, visit.account_id, first, visit.today), LINES_MAX + 1))
    if len(rows) > LINES_MAX:
        way_out = "Take fewer days, or ask your operator for `faregate usage export`."
        return _page(visit, f"These {days} days have more than {LINES_MAX:,} lines. {way_out}", 422)
    return Download(f"usage-{first}-{visit.today}.csv", DAILY.columns, rows)


def _page(visit: Visit, wrong: str | None, status: int = 200) -> Shown:
    days = visit.days_asked()
    span = (visit.connection, visit.account_id, visit.first_of(days), visit.today)
    by_day = usage_by_day(*span)
    facts = {
        "days": days,
        "wrong": wrong,
        "fares": sum(day.fares for day in by_day),
        "posted": sum(day.posted for day in by_day),
        "by_day": by_day,
        "by_model": usage_by(*span, part="model"),
        "by_key": usage_by(*span, part="key_id"),
        "chart": _chart(by_day),
    }
    return Shown("usage.html", facts, status)


def _chart(newest_first: list[DayUsed]) -> Chart:
    return bars(
        [
            (f"{one.day:%-d %b}", one.posted, one.voided + one.expired, f"{one.day}: {one.posted:,} billed")
            for one in reversed(newest_first)
        ]
    )
