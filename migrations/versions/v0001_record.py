"""The record: plans, accounts, users, keys, the ledger with its roll-ups, and the stream's bookkeeping."""

from alembic import op

revision = "v0001"
down_revision = None
branch_labels = None
depends_on = None

PLANS = """
CREATE TABLE plans (
    code text NOT NULL,
    version integer NOT NULL,
    name text NOT NULL,
    price_cents bigint,
    quota_per_day bigint,
    service_class text NOT NULL,
    tiers text[] NOT NULL,
    input_tokens_max integer,
    output_tokens_max integer,
    concurrency integer,
    requests_per_minute integer,
    n_max integer NOT NULL,
    images_max integer NOT NULL,
    effective_from timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,
    CONSTRAINT plans_pkey PRIMARY KEY (code, version),
    CONSTRAINT plans_code_spelling CHECK (code ~ '^[a-z][a-z0-9_-]{0,39}$'),
    CONSTRAINT plans_version_counts_from_one CHECK (version >= 1),
    CONSTRAINT plans_price_not_negative CHECK (price_cents >= 0),
    CONSTRAINT plans_quota_bounds CHECK (quota_per_day BETWEEN 0 AND 1000000000000),
    CONSTRAINT plans_service_class_known CHECK (service_class IN ('enterprise', 'premium', 'pro', 'free', 'batch')),
    CONSTRAINT plans_tiers_known CHECK (tiers <@ ARRAY['free', 'pro', 'premium', 'enterprise'] AND cardinality(tiers) > 0),
    CONSTRAINT plans_envelope_positive CHECK (
        input_tokens_max > 0 AND output_tokens_max > 0 AND concurrency > 0 AND requests_per_minute > 0
        AND n_max > 0 AND images_max >= 0
    )
)
"""

ACCOUNTS = """
CREATE TABLE accounts (
    id uuid NOT NULL,
    name text NOT NULL,
    email text NOT NULL,
    state text NOT NULL DEFAULT 'active',
    plan_code text NOT NULL,
    plan_version integer NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT accounts_pkey PRIMARY KEY (id),
    CONSTRAINT accounts_name_key UNIQUE (name),
    CONSTRAINT accounts_plan_fkey FOREIGN KEY (plan_code, plan_version) REFERENCES plans (code, version),
    CONSTRAINT accounts_state_known CHECK (state IN ('active', 'suspended')),
    CONSTRAINT accounts_version_counts_from_one CHECK (version >= 1),
    CONSTRAINT accounts_name_bounds CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT accounts_email_spelling CHECK (email ~ '^[^@\\s]+@[^@\\s]+$' AND length(email) <= 254)
)
"""

USERS = """
CREATE TABLE users (
    id uuid NOT NULL,
    account_id uuid,
    email text NOT NULL,
    password_hash text NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT users_role_known CHECK (role IN ('admin', 'operator', 'developer')),
    CONSTRAINT users_email_spelling CHECK (email ~ '^[^@\\s]+@[^@\\s]+$' AND length(email) <= 254),
    CONSTRAINT users_password_is_hashed CHECK (password_hash LIKE '$argon2%')
)
"""

KEYS = """
CREATE TABLE keys (
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    hash bytea NOT NULL,
    prefix text NOT NULL,
    last4 text NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    allowed_models text[],
    quota_per_day bigint,
    requests_per_minute integer,
    networks cidr[],
    expires_at timestamptz,
    revoked_at timestamptz,
    rotated_from uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    CONSTRAINT keys_pkey PRIMARY KEY (id),
    CONSTRAINT keys_hash_key UNIQUE (hash),
    CONSTRAINT keys_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT keys_rotated_from_fkey FOREIGN KEY (rotated_from) REFERENCES keys (id),
    CONSTRAINT keys_hash_is_sha256 CHECK (length(hash) = 32),
    CONSTRAINT keys_name_bounds CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT keys_quota_bounds CHECK (quota_per_day BETWEEN 0 AND 1000000000000),
    CONSTRAINT keys_rate_positive CHECK (requests_per_minute > 0)
)
"""

REQUESTS = """
CREATE TABLE requests (
    day date NOT NULL,
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    key_id uuid NOT NULL,
    model text NOT NULL,
    endpoint text NOT NULL,
    fare integer NOT NULL,
    verdict text NOT NULL,
    reason text NOT NULL,
    stream boolean NOT NULL,
    status smallint,
    at timestamptz NOT NULL,
    queue_ms integer,
    first_byte_ms integer,
    total_ms integer,
    prompt_tokens integer,
    cached_tokens integer,
    completion_tokens integer,
    tokens_estimated boolean NOT NULL,
    replica text,
    gateway text NOT NULL,
    CONSTRAINT requests_pkey PRIMARY KEY (day, id),
    CONSTRAINT requests_fare_bounds CHECK (fare BETWEEN 0 AND 1000000),
    CONSTRAINT requests_verdict_known CHECK (verdict IN ('posted', 'voided', 'expired')),
    CONSTRAINT requests_reason_spelling CHECK (reason ~ '^[a-z][a-z_]{0,39}$'),
    CONSTRAINT requests_status_is_http CHECK (status BETWEEN 100 AND 599),
    CONSTRAINT requests_times_not_negative CHECK (queue_ms >= 0 AND first_byte_ms >= 0 AND total_ms >= 0),
    CONSTRAINT requests_tokens_not_negative CHECK (prompt_tokens >= 0 AND cached_tokens >= 0 AND completion_tokens >= 0)
) PARTITION BY RANGE (day)
"""

USAGE_DAILY = """
CREATE TABLE usage_daily (
    account_id uuid NOT NULL,
    day date NOT NULL,
    key_id uuid NOT NULL,
    model text NOT NULL,
    fares bigint NOT NULL,
    posted bigint NOT NULL,
    voided bigint NOT NULL,
    expired bigint NOT NULL,
    hangups bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    CONSTRAINT usage_daily_pkey PRIMARY KEY (account_id, day, key_id, model),
    CONSTRAINT usage_daily_not_negative CHECK (
        fares >= 0 AND posted >= 0 AND voided >= 0 AND expired >= 0 AND hangups >= 0
        AND prompt_tokens >= 0 AND cached_tokens >= 0 AND completion_tokens >= 0
    )
)
"""

STREAMS = """
CREATE TABLE stream_positions (
    shard integer NOT NULL,
    nonce text NOT NULL,
    position text NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT stream_positions_pkey PRIMARY KEY (shard),
    CONSTRAINT stream_positions_spelling CHECK (position ~ '^[0-9]+-[0-9]+$')
);
CREATE TABLE rejected_events (
    shard integer NOT NULL,
    nonce text NOT NULL,
    position text NOT NULL,
    problem text NOT NULL,
    fields jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rejected_events_pkey PRIMARY KEY (shard, nonce, position)
);
CREATE TABLE staged_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT staged_jobs_pkey PRIMARY KEY (id),
    CONSTRAINT staged_jobs_kind_known CHECK (kind IN ('bump'))
);
CREATE TABLE audit_entries (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    actor text NOT NULL,
    action text NOT NULL,
    account_id uuid,
    subject text NOT NULL,
    details jsonb NOT NULL,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (id)
)
"""

INDEXES = """
CREATE UNIQUE INDEX users_email_key ON users (lower(email));
CREATE INDEX keys_account_id_idx ON keys (account_id);
CREATE INDEX requests_account_id_at_idx ON requests (account_id, at);
CREATE INDEX usage_daily_day_idx ON usage_daily (day);
CREATE INDEX audit_entries_account_id_idx ON audit_entries (account_id, at)
"""


def upgrade() -> None:
    for statements in (PLANS, ACCOUNTS, USERS, KEYS, REQUESTS, USAGE_DAILY, STREAMS, INDEXES):
        op.execute(statements)
