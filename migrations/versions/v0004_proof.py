"""What proves and warns: reconciliations with what they found, alerts, and where an account wants to be told of them."""

from alembic import op

revision = "v0004"
down_revision = "v0003"
branch_labels = None
depends_on = None

RECONCILIATIONS = """
CREATE TABLE reconciliations (
    id bigint GENERATED ALWAYS AS IDENTITY,
    night date,
    began_at timestamptz NOT NULL,
    took_ms integer NOT NULL,
    rows bigint NOT NULL,
    counters integer NOT NULL,
    differences integer NOT NULL,
    repaired integer NOT NULL,
    findings jsonb NOT NULL,
    CONSTRAINT reconciliations_pkey PRIMARY KEY (id),
    CONSTRAINT reconciliations_night_key UNIQUE (night),
    CONSTRAINT reconciliations_not_negative CHECK (
        took_ms >= 0 AND rows >= 0 AND counters >= 0 AND repaired >= 0 AND differences >= repaired
    )
)
"""

TARGETS = """
CREATE TABLE alert_targets (
    account_id uuid NOT NULL,
    url text NOT NULL,
    salt bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alert_targets_pkey PRIMARY KEY (account_id),
    CONSTRAINT alert_targets_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT alert_targets_url_bounds CHECK (length(url) <= 2048 AND url ~ '^https?://'),
    CONSTRAINT alert_targets_salt_length CHECK (length(salt) = 16)
)
"""

ALERTS = """
CREATE TABLE alerts (
    account_id uuid NOT NULL,
    kind text NOT NULL,
    day date NOT NULL,
    threshold integer NOT NULL,
    used bigint NOT NULL,
    quota bigint NOT NULL,
    reached_at timestamptz NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    delivered_at timestamptz,
    problem text,
    CONSTRAINT alerts_pkey PRIMARY KEY (account_id, kind, day, threshold),
    CONSTRAINT alerts_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT alerts_kind_known CHECK (kind IN ('quota')),
    CONSTRAINT alerts_threshold_is_percent CHECK (threshold BETWEEN 1 AND 100),
    CONSTRAINT alerts_not_negative CHECK (used >= 0 AND quota >= 0 AND tries >= 0)
);
CREATE INDEX alerts_waiting_idx ON alerts (next_try_at) WHERE delivered_at IS NULL AND next_try_at IS NOT NULL
"""


def upgrade() -> None:
    for statements in (RECONCILIATIONS, TARGETS, ALERTS):
        op.execute(statements)
