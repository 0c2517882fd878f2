"""After months of life: is the record what Stripe's stand-in says? It reads the stand-in's things by none of the shop's code."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, select

from billing.tables import packs, stripe_events, subscriptions
from tests.simulation.life_world import Life
from tests.support.stripe.world import Thing

ALIVE = ("trialing", "active", "past_due", "unpaid", "paused")


def findings(life: Life, accounts: Mapping[str, UUID]) -> list[str]:
    """In words; none when all is well."""
    with life.calm.engine.begin() as connection:
        rows = {row["id"]: row for row in connection.execute(select(subscriptions)).mappings()}
        found = _subscriptions(life, rows)
        found += _one_each(life)
        found += _doubles_given_back(life, connection)
        found += _packs(life, connection)
        waiting = connection.execute(select(stripe_events.c.id).where(stripe_events.c.applied_at.is_(None))).all()
        found += [f"{event.id} is not applied" for event in waiting]
    return found


def _subscriptions(life: Life, rows: Mapping[str, RowMapping]) -> list[str]:
    found = []
    for thing in life.find("subscription"):
        row = rows.get(thing["id"])
        if row is None:
            found.append(f"{thing['id']} ({thing['status']}) is not in the record")
            continue
        said, known = _said(life, thing), {name: row[name] for name in _said(life, thing)}
        found += [
            f"{thing['id']}.{name} is {known[name]!r}, Stripe says {said[name]!r}" for name in said if known[name] != said[name]
        ]
    return found


def _said(life: Life, thing: Thing) -> dict[str, Any]:
    item = thing["items"]["data"][0]
    sells = item["price"]["metadata"]
    return {
        "status": thing["status"],
        "plan_code": sells["faregate_plan"],
        "plan_version": int(sells["faregate_version"]),
        "price_id": item["price"]["id"],
        "current_period_end": _time(item["current_period_end"]),
        "cancel_at_period_end": thing["cancel_at_period_end"],
        "cancel_at": _time(thing["cancel_at"]),
        "ended_at": _time(thing["ended_at"]),
        "past_due_since": _past_due_since(life, thing),
        "pending_plan_code": _pending(life, thing),
    }


def _past_due_since(life: Life, thing: Thing) -> datetime | None:
    if thing["status"] != "past_due":
        return None
    unpaid = [
        one["due_date"] or one["status_transitions"]["finalized_at"]
        for one in life.find("invoice", status="open")
        if one["parent"] and one["parent"]["subscription_details"]["subscription"] == thing["id"]
    ]
    return _time(min(unpaid))


def _pending(life: Life, thing: Thing) -> str | None:
    if thing["schedule"] is None:
        return None
    last = life.world.get("subscription_schedule", thing["schedule"])["phases"][-1]["items"][0]["price"]
    price = life.world.get("price", last)
    found: str = price["metadata"]["faregate_plan"]
    return None if last == thing["items"]["data"][0]["price"]["id"] else found


def _one_each(life: Life) -> list[str]:
    alive = Counter(one["metadata"]["faregate_account"] for one in life.find("subscription") if one["status"] in ALIVE)
    return [f"account {account} has {count} subscriptions" for account, count in alive.items() if count > 1]


def _doubles_given_back(life: Life, connection: Connection) -> list[str]:
    """Whoever was made to end as a double has all of its first bill back, and not more."""
    query = "SELECT DISTINCT subject FROM audit_entries WHERE action = 'subscription.end_double'"
    found = []
    for (which,) in connection.exec_driver_sql(query):
        for invoice in life.find("invoice", billing_reason="subscription_create"):
            if invoice["parent"]["subscription_details"]["subscription"] == which and "_intent" in invoice:
                back = sum(one["amount"] for one in life.find("refund", payment_intent=invoice["_intent"]))
                if back != invoice["amount_paid"]:
                    found.append(f"of the double {which}, {invoice['amount_paid']} were paid and {back} given back")
    return found


def _packs(life: Life, connection: Connection) -> list[str]:
    known = Counter(
        (str(row.account_id), row.fares, row.amount_cents, row.refunded_at is not None)
        for row in connection.execute(select(packs))
    )
    paid: Counter[tuple[str, int, int, bool]] = Counter()
    for session in life.find("checkout.session", mode="payment", status="complete"):
        charge = life.world.get("charge", life.world.get("payment_intent", session["payment_intent"])["latest_charge"])
        of = session["metadata"]
        paid[of["faregate_account"], int(of["faregate_fares"]), charge["amount"], charge["refunded"]] += 1
    return [f"packs {one}: {known[one]} in the record, {paid[one]} paid" for one in known | paid if known[one] != paid[one]]


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
