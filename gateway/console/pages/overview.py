"""An account at a glance: what is left of today, a month of days, its price by the token, and the way to a first call."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from billing.entitled import plans_at
from billing.entitlements import FOREVER, Term
from billing.savings import compare
from billing.tables import keys
from billing.token_prices import token_prices
from billing.traffic import traffic
from billing.usage import DayUsed, usage_by_day
from gateway.console.answers import Answer, Shown
from gateway.console.charts import bars
from gateway.console.visit import Visit
from gateway.limits.refusals import GateClosed

DAYS = 30


def show(visit: Visit) -> Answer:
    settings = visit.house.settings
    term = plans_at(visit.connection, visit.now, settings.grace_days, [visit.account_id])[visit.account_id]
    used = {day.day: day for day in usage_by_day(visit.connection, visit.account_id, visit.first_of(DAYS), visit.today)}
    days = [used.get(visit.first_of(DAYS) + timedelta(days=n)) for n in range(DAYS)]
    facts = {
        "plan": term.plan,
        "source": term.source,
        "until": None if term.until >= FOREVER else datetime.fromtimestamp(term.until / 1000, UTC),
        "today": _today(visit, term, used.get(visit.today)),
        "chart": _chart(visit, days),
        "sums": _sums([day for day in days if day is not None]),
        "saved": _saved(visit, term),
        "base_url": visit.base_url,
        "days": DAYS,
    }
    return Shown("overview.html", facts)


def _today(visit: Visit, term: Term, recorded: DayUsed | None) -> dict[str, Any]:
    """As the gate counts it; where Valkey is away, as it was recorded until now."""
    quota, used, is_live = term.plan.quota_per_day, recorded.fares if recorded else 0, True
    key_id = visit.connection.scalar(select(keys.c.id).where(keys.c.account_id == visit.account_id).limit(1))
    try:
        if key_id is not None:  # without a key nothing was ever called
            used = visit.wait(visit.house.gate.usage(str(visit.account_id), str(key_id))).used
    except (GateClosed, TimeoutError):
        is_live = False
    resets = (visit.now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left = None if quota is None else max(0, quota - used)
    percent = None if not quota else min(100, round(100 * used / quota))
    return {"used": used, "quota": quota, "left": left, "percent": percent, "resets": resets, "is_live": is_live}


def _chart(visit: Visit, days: list[DayUsed | None]) -> Any:
    points = []
    for place, day in enumerate(days):
        at = visit.first_of(DAYS) + timedelta(days=place)
        billed = day.posted if day else 0
        unbilled = day.voided + day.expired if day else 0
        points.append((at.strftime("%-d %b"), billed, unbilled, f"{at.isoformat()}: {billed:,} billed, {unbilled:,} not billed"))
    return bars(points)


def _sums(days: list[DayUsed]) -> dict[str, int]:
    names = ("posted", "voided", "expired", "fares", "prompt_tokens", "cached_tokens", "completion_tokens")
    return {name: sum(getattr(day, name) for day in days) for name in names}


def _saved(visit: Visit, term: Term) -> Any:
    """Beside prices by the token; None where nothing was billed."""
    first = visit.first_of(DAYS)
    carried = traffic(visit.connection, visit.account_id, first, visit.today)
    if not carried:
        return None
    prices = token_prices((one.model for one in carried), visit.today)
    return compare(term.plan, carried, prices, DAYS)
