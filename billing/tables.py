"""The tables of the record, as SQLAlchemy Core sees them; the migrations make them (CHECKs are there alone)."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY, CIDR, JSONB

metadata = MetaData()
_TIME = DateTime(timezone=True)

# A plan is never edited: a change is a new version, and an account names the version that it bought.
plans = Table(
    "plans",
    metadata,
    Column("code", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("price_cents", BigInteger),  # null: agreed with each customer
    Column("quota_per_day", BigInteger),  # null: unlimited
    Column("service_class", Text, nullable=False),
    Column("tiers", ARRAY(Text), nullable=False),
    Column("input_tokens_max", Integer),  # null: the model's served context
    Column("output_tokens_max", Integer),  # null: the model's served context
    Column("concurrency", Integer),  # null: unlimited
    Column("requests_per_minute", Integer),  # null: unlimited
    Column("n_max", Integer, nullable=False),
    Column("images_max", Integer, nullable=False),
    Column("floor_percent", Integer, nullable=False, server_default="0"),
    Column("reserved_slots", Integer, nullable=False, server_default="0"),
    Column("share_percent", Integer, nullable=False, server_default="100"),
    Column("queue_depth", Integer),  # null: the installation's setting
    Column("queue_seconds", Integer),  # null: the installation's setting
    Column("ttft_target_ms", Integer),  # null: none
    Column("beyond_quota", Text, nullable=False, server_default="refuse"),
    Column("effective_from", _TIME, nullable=False, server_default=func.now()),
    Column("retired_at", _TIME),
    PrimaryKeyConstraint("code", "version", name="plans_pkey"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("email", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="active"),
    Column("plan_code", Text, nullable=False),
    Column("plan_version", Integer, nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),  # moved by every change of account, plan or key
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("pack_fares_per_month", BigInteger),  # the customer's own cap; null: none
    PrimaryKeyConstraint("id", name="accounts_pkey"),
    UniqueConstraint("name", name="accounts_name_key"),
    ForeignKeyConstraint(["plan_code", "plan_version"], ["plans.code", "plans.version"], name="accounts_plan_fkey"),
)

users = Table(
    "users",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("email", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("id", name="users_pkey"),
)
Index("users_email_key", func.lower(users.c.email), unique=True)

# Only the HMAC of a key is kept; `prefix` and `last4` let its owner recognise it.
keys = Table(
    "keys",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("last4", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("allowed_models", ARRAY(Text)),  # null: whatever the plan opens
    Column("quota_per_day", BigInteger),
    Column("requests_per_minute", Integer),
    Column("networks", ARRAY(CIDR)),  # null: from anywhere
    Column("expires_at", _TIME),
    Column("revoked_at", _TIME),
    Column("rotated_from", Uuid),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("last_used_at", _TIME),
    PrimaryKeyConstraint("id", name="keys_pkey"),
    UniqueConstraint("hash", name="keys_hash_key"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="keys_account_fkey"),
    ForeignKeyConstraint(["rotated_from"], ["keys.id"], name="keys_rotated_from_fkey"),
    Index("keys_account_id_idx", "account_id"),
)

# The ledger: appended by billing/ledger.py, never edited. No foreign keys: an event is recorded whatever became of its account.
requests = Table(
    "requests",
    metadata,
    Column("day", Date, nullable=False),
    Column("id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("key_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("fare", Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("status", SmallInteger),
    Column("at", _TIME, nullable=False),
    Column("queue_ms", Integer),
    Column("first_byte_ms", Integer),
    Column("total_ms", Integer),
    Column("prompt_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("tokens_estimated", Boolean, nullable=False),
    Column("replica", Text),
    Column("gateway", Text, nullable=False),
    Column("from_pack", Boolean, nullable=False, server_default="false"),
    PrimaryKeyConstraint("day", "id", name="requests_pkey"),
    Index("requests_account_id_at_idx", "account_id", "at"),
    postgresql_partition_by="RANGE (day)",
)

# What `requests` adds up to, moved in the same transaction. `fares` are those of posted rows, except of those from a pack, which
# are `pack_fares`; tokens are of all rows.
usage_daily = Table(
    "usage_daily",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("day", Date, nullable=False),
    Column("key_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    Column("fares", BigInteger, nullable=False),
    Column("posted", BigInteger, nullable=False),
    Column("voided", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("hangups", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("pack_fares", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("account_id", "day", "key_id", "model", name="usage_daily_pkey"),
    Index("usage_daily_day_idx", "day"),
)
Index("usage_daily_packs_idx", usage_daily.c.account_id, usage_daily.c.day, postgresql_where=usage_daily.c.pack_fares > 0)

# How far into each shard's stream the ledger is; a nonce names the memory of Valkey that the position belongs to.
stream_positions = Table(
    "stream_positions",
    metadata,
    Column("shard", Integer, nullable=False, autoincrement=False),
    Column("nonce", Text, nullable=False),
    Column("position", Text, nullable=False),
    Column("moved_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("shard", name="stream_positions_pkey"),
)

rejected_events = Table(
    "rejected_events",
    metadata,
    Column("shard", Integer, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("position", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("shard", "nonce", "position", name="rejected_events_pkey"),
)

# Effects that must follow a commit are rows of that commit; the worker does them and removes them.
staged_jobs = Table(
    "staged_jobs",
    metadata,
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("id", name="staged_jobs_pkey"),
)

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("at", _TIME, nullable=False, server_default=func.now()),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("account_id", Uuid),
    Column("subject", Text, nullable=False),
    Column("details", JSONB, nullable=False),
    PrimaryKeyConstraint("id", name="audit_entries_pkey"),
    Index("audit_entries_account_id_idx", "account_id", "at"),
)

# Who is billed for an account, by Stripe's id.
customers = Table(
    "customers",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("stripe_id", Text, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("account_id", name="customers_pkey"),
    UniqueConstraint("stripe_id", name="customers_stripe_id_key"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="customers_account_fkey"),
)

# What Stripe last said of each, in its own words; written by billing/subscriptions.py alone.
subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", Text, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("status", Text, nullable=False),
    Column("plan_code", Text),  # null: its price sells no plan that is known here
    Column("plan_version", Integer),
    Column("price_id", Text, nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount_cents", BigInteger, nullable=False),
    Column("collection_method", Text, nullable=False),
    Column("current_period_start", _TIME, nullable=False),
    Column("current_period_end", _TIME, nullable=False),
    Column("cancel_at_period_end", Boolean, nullable=False),
    Column("cancel_at", _TIME),
    Column("trial_end", _TIME),
    Column("past_due_since", _TIME),
    Column("paused", Boolean, nullable=False),
    Column("latest_invoice", Text),
    Column("pending_plan_code", Text),  # what a schedule changes it to
    Column("pending_plan_version", Integer),
    Column("pending_at", _TIME),
    Column("fetched_at", _TIME, nullable=False),  # moves with every writing: of two who fetch at once, one notices
    Column("ended_at", _TIME),
    PrimaryKeyConstraint("id", name="subscriptions_pkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="subscriptions_account_fkey"),
    ForeignKeyConstraint(["plan_code", "plan_version"], ["plans.code", "plans.version"], name="subscriptions_plan_fkey"),
    Index("subscriptions_account_id_idx", "account_id"),
)
Index("subscriptions_alive_idx", subscriptions.c.account_id, postgresql_where=subscriptions.c.ended_at.is_(None))

# One an account and a person.
trials = Table(
    "trials",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("email_normal", Text, nullable=False),
    Column("network", CIDR),
    Column("plan_code", Text, nullable=False),
    Column("plan_version", Integer, nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("ends_at", _TIME, nullable=False),
    PrimaryKeyConstraint("account_id", name="trials_pkey"),
    UniqueConstraint("email_normal", name="trials_email_normal_key"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="trials_account_fkey"),
    ForeignKeyConstraint(["plan_code", "plan_version"], ["plans.code", "plans.version"], name="trials_plan_fkey"),
    Index("trials_network_idx", "network", "started_at"),
)

# Plans that an admin gave, or agreed on in a contract.
grants = Table(
    "grants",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("plan_code", Text, nullable=False),
    Column("plan_version", Integer, nullable=False),
    Column("from_at", _TIME, nullable=False),
    Column("until_at", _TIME),  # null: until it is revoked
    Column("actor", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("made_at", _TIME, nullable=False, server_default=func.now()),
    Column("revoked_at", _TIME),
    PrimaryKeyConstraint("id", name="grants_pkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="grants_account_fkey"),
    ForeignKeyConstraint(["plan_code", "plan_version"], ["plans.code", "plans.version"], name="grants_plan_fkey"),
    Index("grants_account_id_idx", "account_id"),
)

# Fares beyond the day's quota, each bought by one payment; without one an admin gave it. It never expires.
packs = Table(
    "packs",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("fares", BigInteger, nullable=False),
    Column("amount_cents", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("payment_intent", Text),
    Column("bought_at", _TIME, nullable=False),
    Column("refunded_at", _TIME),
    Column("taken_back", BigInteger),  # what was not used of it when it was given back
    PrimaryKeyConstraint("id", name="packs_pkey"),
    UniqueConstraint("payment_intent", name="packs_payment_intent_key"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="packs_account_fkey"),
    Index("packs_account_id_idx", "account_id"),
)

# What Stripe told: stored once, applied by the worker. `payload` is what it happened to, in ids.
stripe_events = Table(
    "stripe_events",
    metadata,
    Column("id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("created", _TIME, nullable=False),
    Column("api_version", Text),
    Column("object_id", Text),
    Column("payload", JSONB, nullable=False),
    Column("received_at", _TIME, nullable=False),
    Column("applied_at", _TIME),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next_try_at", _TIME),  # null: given up, until somebody replays it
    Column("problem", Text),
    PrimaryKeyConstraint("id", name="stripe_events_pkey"),
)
Index("stripe_events_waiting_idx", stripe_events.c.next_try_at, postgresql_where=stripe_events.c.applied_at.is_(None))

# Each proof that the record adds up, and what it found; `night` is null where a person asked for it.
reconciliations = Table(
    "reconciliations",
    metadata,
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("night", Date),
    Column("began_at", _TIME, nullable=False),
    Column("took_ms", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("counters", Integer, nullable=False),
    Column("differences", Integer, nullable=False),
    Column("repaired", Integer, nullable=False),
    Column("findings", JSONB, nullable=False),
    PrimaryKeyConstraint("id", name="reconciliations_pkey"),
    UniqueConstraint("night", name="reconciliations_night_key"),
)

# Where an account is told of its alerts; what signs them is drawn from the key pepper and `salt`, and is stored nowhere.
alert_targets = Table(
    "alert_targets",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("url", Text, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("account_id", name="alert_targets_pkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="alert_targets_account_fkey"),
)

# Once for each account, day and threshold (percent). `next_try_at` is null where nobody is to be told, or nobody any more.
alerts = Table(
    "alerts",
    metadata,
    Column("account_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("day", Date, nullable=False),
    Column("threshold", Integer, nullable=False, autoincrement=False),
    Column("used", BigInteger, nullable=False),
    Column("quota", BigInteger, nullable=False),
    Column("reached_at", _TIME, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next_try_at", _TIME),
    Column("delivered_at", _TIME),
    Column("problem", Text),
    PrimaryKeyConstraint("account_id", "kind", "day", "threshold", name="alerts_pkey"),
    ForeignKeyConstraint(["account_id"], ["accounts.id"], name="alerts_account_fkey"),
)
Index(
    "alerts_waiting_idx", alerts.c.next_try_at,
    postgresql_where=alerts.c.delivered_at.is_(None) & alerts.c.next_try_at.is_not(None),
)  # fmt: skip
