"""The table of the fleet at run time, as SQLAlchemy Core sees it."""

from sqlalchemy import BigInteger, Column, Date, DateTime, PrimaryKeyConstraint, Table, Text, func
from sqlalchemy.dialects.postgresql import JSONB

from billing.tables import metadata

# One row a replica that was ever heard of; `version` counts its changes, so that a sum says whether anything has changed.
replicas = Table(
    "replicas",
    metadata,
    Column("id", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("entry", JSONB),
    Column("state", Text, nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("changed_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("id", name="replicas_pkey"),
)

# By the calendar month in UTC, its first day.
upstream_spending = Table(
    "upstream_spending",
    metadata,
    Column("replica", Text, nullable=False),
    Column("month", Date, nullable=False),
    Column("microcents", BigInteger, nullable=False),
    PrimaryKeyConstraint("replica", "month", name="upstream_spending_pkey"),
)
