"""What is bought at Stripe: who is billed, their subscriptions and packs, and the events that tell of them."""

from alembic import op

revision = "v0003"
down_revision = "v0002"
branch_labels = None
depends_on = None

CUSTOMERS = """
CREATE TABLE customers (
    account_id uuid NOT NULL,
    stripe_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT customers_pkey PRIMARY KEY (account_id),
    CONSTRAINT customers_stripe_id_key UNIQUE (stripe_id),
    CONSTRAINT customers_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id)
)
"""

# What Stripe says must always fit: no word of it is checked against a list, and nothing forbids a second subscription.
SUBSCRIPTIONS = """
CREATE TABLE subscriptions (
    id text NOT NULL,
    account_id uuid NOT NULL,
    status text NOT NULL,
    plan_code text,
    plan_version integer,
    price_id text NOT NULL,
    quantity integer NOT NULL,
    currency text NOT NULL,
    amount_cents bigint NOT NULL,
    collection_method text NOT NULL,
    current_period_start timestamptz NOT NULL,
    current_period_end timestamptz NOT NULL,
    cancel_at_period_end boolean NOT NULL,
    cancel_at timestamptz,
    trial_end timestamptz,
    past_due_since timestamptz,
    paused boolean NOT NULL,
    latest_invoice text,
    pending_plan_code text,
    pending_plan_version integer,
    pending_at timestamptz,
    fetched_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT subscriptions_pkey PRIMARY KEY (id),
    CONSTRAINT subscriptions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT subscriptions_plan_fkey FOREIGN KEY (plan_code, plan_version) REFERENCES plans (code, version),
    CONSTRAINT subscriptions_amount_not_negative CHECK (amount_cents >= 0 AND quantity >= 0)
);
CREATE INDEX subscriptions_account_id_idx ON subscriptions (account_id);
CREATE INDEX subscriptions_alive_idx ON subscriptions (account_id) WHERE ended_at IS NULL
"""

PACKS = """
CREATE TABLE packs (
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    fares bigint NOT NULL,
    amount_cents bigint NOT NULL,
    currency text NOT NULL,
    payment_intent text NOT NULL,
    bought_at timestamptz NOT NULL,
    expires_at timestamptz,
    refunded_at timestamptz,
    CONSTRAINT packs_pkey PRIMARY KEY (id),
    CONSTRAINT packs_payment_intent_key UNIQUE (payment_intent),
    CONSTRAINT packs_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT packs_fares_bounds CHECK (fares BETWEEN 1 AND 10000000),
    CONSTRAINT packs_amount_not_negative CHECK (amount_cents >= 0)
);
CREATE INDEX packs_account_id_idx ON packs (account_id)
"""

EVENTS = """
CREATE TABLE stripe_events (
    id text NOT NULL,
    type text NOT NULL,
    created timestamptz NOT NULL,
    api_version text,
    object_id text,
    payload jsonb NOT NULL,
    received_at timestamptz NOT NULL,
    applied_at timestamptz,
    tries integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    problem text,
    CONSTRAINT stripe_events_pkey PRIMARY KEY (id),
    CONSTRAINT stripe_events_tries_not_negative CHECK (tries >= 0)
);
CREATE INDEX stripe_events_waiting_idx ON stripe_events (next_try_at) WHERE applied_at IS NULL
"""


def upgrade() -> None:
    for statements in (CUSTOMERS, SUBSCRIPTIONS, PACKS, EVENTS):
        op.execute(statements)
