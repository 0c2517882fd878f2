"""One account, for the admin: its plan and what gives it, its keys and days, and what can be done about it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from billing.accounts import find_account, resume_account, suspend_account
from billing.entitled import plans_at
from billing.entitlements import FOREVER
from billing.grants import GrantWrong, give
from billing.plan_versions import PlanUnknown, list_plans
from billing.tables import audit_entries
from billing.unknown import AccountUnknown
from billing.usage import usage_by_day
from gateway.access.issue import list_keys
from gateway.console.answers import Answer, Moved, NotHere, Shown
from gateway.console.visit import Visit

DAYS = 14
ENTRIES = 20
LIFETIMES = {"7": timedelta(days=7), "30": timedelta(days=30), "365": timedelta(days=365), "": None}


def show(visit: Visit) -> Answer:
    return _page(visit)


def set_state(visit: Visit) -> Answer:
    account_id, state = visit.id_in_path(), visit.form.get("state")
    if state not in ("active", "suspended"):
        return _page(visit, 422, wrong="An account is active or suspended.")
    change = resume_account if state == "active" else suspend_account
    try:
        change(visit.connection, account_id, actor=visit.who.actor)
    except AccountUnknown:
        raise NotHere from None
    return Moved(f"/admin/accounts/{account_id}")


def give_plan(visit: Visit) -> Answer:
    account_id, days = visit.id_in_path(), visit.form.get("days", "")
    if days not in LIFETIMES:
        return _page(visit, 422, wrong="Choose one of the times.")
    lifetime = LIFETIMES[days]
    try:
        with visit.connection.begin_nested():  # a refusal of the database ends this part alone
            give(
                visit.connection, account_id, visit.form.get("plan", ""), kind="grant", from_at=visit.now,
                until_at=None if lifetime is None else visit.now + lifetime, actor=visit.who.actor, why=visit.form.get("why", ""),
            )  # fmt: skip
    except AccountUnknown:
        raise NotHere from None
    except (PlanUnknown, GrantWrong) as wrong:
        return _page(visit, 422, wrong=str(wrong))
    return Moved(f"/admin/accounts/{account_id}")


def _page(visit: Visit, status: int = 200, **more: Any) -> Shown:
    try:
        account = find_account(visit.connection, str(visit.id_in_path()))
    except AccountUnknown:
        raise NotHere from None
    term = plans_at(visit.connection, visit.now, visit.house.settings.grace_days, [account.id])[account.id]
    c = audit_entries.c
    entries = select(c.at, c.actor, c.action, c.details).where(c.account_id == account.id).order_by(c.at.desc()).limit(ENTRIES)
    facts = {
        "account": account,
        "term": term,
        "until": None if term.until >= FOREVER else datetime.fromtimestamp(term.until / 1000, UTC),
        "keys": [(key, key.state(visit.now)) for key in list_keys(visit.connection, account.id)],
        "used": usage_by_day(visit.connection, account.id, visit.first_of(DAYS), visit.today),
        "entries": visit.connection.execute(entries).all(),
        "codes": sorted({version.plan.code for version in list_plans(visit.connection)}),
        "wrong": None,
        **more,
    }
    return Shown("account.html", facts, status)
