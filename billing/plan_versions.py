"""Plans in the database: versions are added and retired, never edited."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select

from billing.changes import audit
from billing.constraints import named_constraints
from billing.plans import Plan, plan_from_row
from billing.tables import plans


class PlanUnknown(Exception):
    """There is no such plan, or no such version of it."""


class PlanWrong(Exception):
    """The numbers can't be those of a plan."""


class PlanLoses(Exception):
    """With these numbers the plan's price does not pay for the GPU time that it sells."""


@dataclass(frozen=True, slots=True)
class PlanVersion:
    plan: Plan
    effective_from: datetime
    retired_at: datetime | None


_WRONG = {
    "plans_price_not_negative": PlanWrong("The price is in cents and can't be below 0."),
    "plans_quota_bounds": PlanWrong("The quota is requests a day, 0 to 1,000,000,000,000."),
    "plans_service_class_known": PlanWrong("The class is one of enterprise, premium, pro, free, batch."),
    "plans_tiers_known": PlanWrong("Tiers are one or more of free, pro, premium, enterprise."),
    "plans_envelope_positive": PlanWrong("Limits of a call are 1 or more (images: 0 or more); leave one out for none."),
    "plans_shares_are_percents": PlanWrong("The floor is 0 to 50 percent of a pool, the share 1 to 100."),
    "plans_queue_bounds": PlanWrong("Reserved slots and the queue's depth are 0 or more, a wait is 0 to 3,600 seconds."),
    "plans_ttft_target_positive": PlanWrong("A target for the first token is 1 ms or more."),
    "plans_beyond_quota_known": PlanWrong("Beyond the quota a plan says refuse, slow or pack."),
}


def list_plans(connection: Connection) -> list[PlanVersion]:
    """Every version, oldest first."""
    rows = connection.execute(select(plans).order_by(plans.c.price_cents.nulls_last(), plans.c.code, plans.c.version))
    return [_version(row) for row in rows.mappings()]


def plan_on_offer(connection: Connection, code: str) -> Plan:
    """The newest version that is in effect and not retired. Raises: PlanUnknown."""
    query = (
        select(plans)
        .where(plans.c.code == code, plans.c.effective_from <= func.now())
        .where(plans.c.retired_at.is_(None) | (plans.c.retired_at > func.now()))
        .order_by(plans.c.version.desc())
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        raise PlanUnknown(f"There is no plan {code!r} on offer. `faregate plans list` shows them.")
    return plan_from_row({**row})


def find_version(connection: Connection, code: str, version: int | None = None) -> PlanVersion:
    """The newest without a version. Raises: PlanUnknown."""
    found = [one for one in list_plans(connection) if one.plan.code == code and version in (None, one.plan.version)]
    if not found:
        raise PlanUnknown(f"There is no plan {code!r}{f' v{version}' if version else ''}. `faregate plans list` shows them.")
    return found[-1]


def add_version(
    connection: Connection, code: str, changes: Mapping[str, Any], *, actor: str, effective_from: datetime | None = None
) -> PlanVersion:
    """The newest version with these columns changed. Accounts stay on the version they have until they are moved.

    Raises: PlanUnknown, PlanWrong.
    """
    newest = select(plans).where(plans.c.code == code).order_by(plans.c.version.desc()).limit(1).with_for_update()
    row = connection.execute(newest).mappings().first()
    if row is None:
        raise PlanUnknown(f"There is no plan {code!r}. `faregate plans list` shows them.")
    values = {**row, **changes, "version": row["version"] + 1, "retired_at": None}
    values["effective_from"] = effective_from or func.now()
    with named_constraints(_WRONG):
        made = connection.execute(insert(plans).values(values).returning(plans)).mappings().one()
    audit(connection, "plan.new_version", actor=actor, subject=f"{code}@{made['version']}", details=dict(changes))
    return _version(made)


def _version(row: RowMapping) -> PlanVersion:
    return PlanVersion(plan_from_row({**row}), row["effective_from"], row["retired_at"])
