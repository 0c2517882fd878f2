"""What the record knows of accounts' plans: one query, and its rows as terms."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from billing.entitlements import DAY_MS, Claim, Subscribed, Term, claims_of, entitled, schedule
from billing.plans import plan_from_row


def _ms(column: str) -> str:
    return f"(extract(epoch FROM {column}) * 1000)::bigint"


# Of the account `a`; its own plan is joined as `p`. A few rows each, by index.
FACTS = f"""
       row_to_json(p) AS own_plan,
       (SELECT json_agg(json_build_object('status', s.status, 'plan', row_to_json(sold), 'past_due_at', {_ms("s.past_due_since")},
               'ends_at', {_ms("least(s.cancel_at, CASE WHEN s.cancel_at_period_end THEN s.current_period_end END)")},
               'pending', row_to_json(next), 'pending_at', {_ms("s.pending_at")}))
          FROM subscriptions s
          LEFT JOIN plans sold ON sold.code = s.plan_code AND sold.version = s.plan_version
          LEFT JOIN plans next ON next.code = s.pending_plan_code AND next.version = s.pending_plan_version
         WHERE s.account_id = a.id AND s.ended_at IS NULL) AS subscriptions,
       (SELECT json_agg(json_build_object('source', given.kind, 'plan', row_to_json(g), 'from_at', {_ms("given.from_at")},
               'until', {_ms("given.until_at")}))
          FROM (SELECT account_id, kind, plan_code, plan_version, from_at, until_at FROM grants WHERE revoked_at IS NULL
                UNION ALL
                SELECT account_id, 'trial', plan_code, plan_version, started_at, ends_at FROM trials) given
          JOIN plans g ON g.code = given.plan_code AND g.version = given.plan_version
         WHERE given.account_id = a.id) AS given"""  # noqa: S608 - put together from constants

ALL = f"SELECT a.id, {FACTS} FROM accounts a JOIN plans p ON p.code = a.plan_code AND p.version = a.plan_version"  # noqa: S608
SOME = f"{ALL} WHERE a.id = ANY(%(ids)s)"


def terms_from_row(row: Mapping[str, Any], grace_days: int) -> tuple[Term, ...]:
    """Of a row with the columns of `FACTS`."""
    return schedule(plan_from_row(row["own_plan"]), _claims(row, grace_days))


def at_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def term_from_row(row: Mapping[str, Any], at: int, grace_days: int) -> Term:
    """Of a row with the columns of `FACTS`."""
    return entitled(plan_from_row(row["own_plan"]), _claims(row, grace_days), at)


def _claims(row: Mapping[str, Any], grace_days: int) -> Sequence[Claim]:
    found = [claim for fact in row["subscriptions"] or () for claim in claims_of(_subscribed(fact), grace_days * DAY_MS)]
    for fact in row["given"] or ():
        ends = {} if fact["until"] is None else {"until": fact["until"]}
        found.append(Claim(plan_from_row(fact["plan"]), fact["source"], fact["from_at"], **ends))
    return found


def _subscribed(fact: Mapping[str, Any]) -> Subscribed:
    sold, pending = (None if fact[name] is None else plan_from_row(fact[name]) for name in ("plan", "pending"))
    return Subscribed(fact["status"], sold, fact["past_due_at"], fact["ends_at"], pending, fact["pending_at"])
