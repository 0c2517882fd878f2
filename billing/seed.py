"""What an installation begins with: the default plans."""

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from billing.database import open_engine
from billing.plans import DEFAULT_PLANS, TRIAL_PLAN, row_from_plan
from billing.tables import plans


def seed(database_url: str) -> int:
    """Add the default plans that are missing; changes nothing that is there. Returns how many were added."""
    engine = open_engine(database_url)
    try:
        with engine.begin() as connection:
            return seed_plans(connection)
    finally:
        engine.dispose()


def seed_plans(connection: Connection) -> int:
    rows = [row_from_plan(plan) for plan in (*DEFAULT_PLANS, TRIAL_PLAN)]
    added = connection.execute(insert(plans).values(rows).on_conflict_do_nothing(constraint="plans_pkey").returning(plans.c.code))
    return len(added.all())
