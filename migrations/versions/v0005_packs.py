"""Packs are used: what of each was taken back, the customer's own cap, and which fares of the ledger came from them."""

from alembic import op

revision = "v0005"
down_revision = "v0004"
branch_labels = None
depends_on = None

# A pack never expires; the column for it was in no release, so no older program misses it. What an admin gives was paid by
# nobody. Of those given back so far nothing could be used.
PACKS = """
ALTER TABLE packs
    DROP COLUMN expires_at,
    ALTER COLUMN payment_intent DROP NOT NULL,
    ADD COLUMN taken_back bigint;
UPDATE packs SET taken_back = fares WHERE refunded_at IS NOT NULL;
ALTER TABLE packs
    ADD CONSTRAINT packs_taken_back_bounds CHECK (taken_back BETWEEN 0 AND fares),
    ADD CONSTRAINT packs_refund_whole CHECK ((refunded_at IS NULL) = (taken_back IS NULL)),
    ADD CONSTRAINT packs_paid_or_given CHECK (payment_intent IS NOT NULL OR amount_cents = 0);
ALTER TABLE accounts
    ADD COLUMN pack_fares_per_month bigint,
    ADD CONSTRAINT accounts_pack_cap_bounds CHECK (pack_fares_per_month BETWEEN 0 AND 1000000000000);
ALTER TABLE plans
    DROP CONSTRAINT plans_beyond_quota_known,
    ADD CONSTRAINT plans_beyond_quota_known CHECK (beyond_quota IN ('refuse', 'slow', 'pack'))
"""

# Constant defaults: no row is rewritten.
LEDGER = """
ALTER TABLE requests ADD COLUMN from_pack boolean NOT NULL DEFAULT false;
ALTER TABLE usage_daily
    ADD COLUMN pack_fares bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT usage_daily_pack_fares_not_negative CHECK (pack_fares >= 0);
CREATE INDEX usage_daily_packs_idx ON usage_daily (account_id, day) WHERE pack_fares > 0
"""


def upgrade() -> None:
    for statements in (PACKS, LEDGER):
        op.execute(statements)
