"""The tables of who sees what: members of accounts, and sessions; the migrations make them."""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
)

from billing.tables import metadata

_TIME = DateTime(timezone=True)

members = Table(
    "members",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("user_id", Uuid, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("account_id", "user_id", name="members_pkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="members_account_fkey"),
    ForeignKeyConstraint(["user_id"], ["users.id"], name="members_user_fkey"),
    Index("members_user_id_idx", "user_id"),
)

# Only the HMAC of a session's token is kept. `account_id` is the account that is looked at.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("user_id", Uuid, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("account_id", Uuid),
    Column("address", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("began_at", _TIME, nullable=False),
    Column("seen_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    PrimaryKeyConstraint("id", name="sessions_pkey"),
    UniqueConstraint("hash", name="sessions_hash_key"),
    ForeignKeyConstraint(["user_id"], ["users.id"], name="sessions_user_fkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="sessions_account_fkey"),
    Index("sessions_user_id_idx", "user_id"),
)
