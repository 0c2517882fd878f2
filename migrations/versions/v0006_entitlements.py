"""What gives an account a plan beside its own: trials, and what admins grant or agree on."""

from alembic import op

revision = "v0006"
down_revision = "v0005"
branch_labels = None
depends_on = None

TRIALS = """
CREATE TABLE trials (
    account_id uuid NOT NULL,
    email_normal text NOT NULL,
    network cidr,
    plan_code text NOT NULL,
    plan_version integer NOT NULL,
    started_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    CONSTRAINT trials_pkey PRIMARY KEY (account_id),
    CONSTRAINT trials_email_normal_key UNIQUE (email_normal),
    CONSTRAINT trials_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT trials_plan_fkey FOREIGN KEY (plan_code, plan_version) REFERENCES plans (code, version),
    CONSTRAINT trials_end_after_beginning CHECK (ends_at > started_at)
);
CREATE INDEX trials_network_idx ON trials (network, started_at)
"""

GRANTS = """
CREATE TABLE grants (
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    kind text NOT NULL,
    plan_code text NOT NULL,
    plan_version integer NOT NULL,
    from_at timestamptz NOT NULL,
    until_at timestamptz,
    actor text NOT NULL,
    why text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    CONSTRAINT grants_pkey PRIMARY KEY (id),
    CONSTRAINT grants_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT grants_plan_fkey FOREIGN KEY (plan_code, plan_version) REFERENCES plans (code, version),
    CONSTRAINT grants_kind_known CHECK (kind IN ('grant', 'contract')),
    CONSTRAINT grants_end_after_beginning CHECK (until_at > from_at),
    CONSTRAINT grants_why_bounds CHECK (length(why) BETWEEN 1 AND 500)
);
CREATE INDEX grants_account_id_idx ON grants (account_id)
"""


def upgrade() -> None:
    for statements in (TRIALS, GRANTS):
        op.execute(statements)
