"""What a plan says of waiting: its class's floor, reserve and share, depth and wait, target, and the slow lane."""

from alembic import op

revision = "v0002"
down_revision = "v0001"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE plans
    ADD COLUMN floor_percent integer NOT NULL DEFAULT 0,
    ADD COLUMN reserved_slots integer NOT NULL DEFAULT 0,
    ADD COLUMN share_percent integer NOT NULL DEFAULT 100,
    ADD COLUMN queue_depth integer,
    ADD COLUMN queue_seconds integer,
    ADD COLUMN ttft_target_ms integer,
    ADD COLUMN beyond_quota text NOT NULL DEFAULT 'refuse',
    ADD CONSTRAINT plans_shares_are_percents CHECK (floor_percent BETWEEN 0 AND 50 AND share_percent BETWEEN 1 AND 100),
    ADD CONSTRAINT plans_queue_bounds CHECK (
        reserved_slots BETWEEN 0 AND 4096 AND queue_depth BETWEEN 0 AND 1000000 AND queue_seconds BETWEEN 0 AND 3600
    ),
    ADD CONSTRAINT plans_ttft_target_positive CHECK (ttft_target_ms > 0),
    ADD CONSTRAINT plans_beyond_quota_known CHECK (beyond_quota IN ('refuse', 'slow'))
"""

# Plans that are there already get what the default plan of their class says today; who wants another adds a version.
SEEDED = """
UPDATE plans SET floor_percent = was.floor, share_percent = was.share, ttft_target_ms = was.ttft
  FROM (VALUES ('free', 5, 15, 30000), ('pro', 10, 100, 3000), ('premium', 10, 100, 1000), ('enterprise', 0, 100, 1000))
       AS was (service_class, floor, share, ttft)
 WHERE plans.service_class = was.service_class
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(SEEDED)
