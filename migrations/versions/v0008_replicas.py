"""The fleet at run time: which replicas there are beside the fleet file's, in which state each is, what upstream ones cost."""

from alembic import op

revision = "v0008"
down_revision = "v0006"
branch_labels = None
depends_on = None

REPLICAS = """
CREATE TABLE replicas (
    id text NOT NULL,
    origin text NOT NULL,
    entry jsonb,
    state text NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    changed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT replicas_pkey PRIMARY KEY (id),
    CONSTRAINT replicas_id_bounds CHECK (length(id) BETWEEN 1 AND 128),
    CONSTRAINT replicas_origin_known CHECK (origin IN ('file', 'added', 'found')),
    CONSTRAINT replicas_added_have_an_entry CHECK ((origin = 'added') = (entry IS NOT NULL)),
    CONSTRAINT replicas_state_known CHECK (
        state IN ('starting', 'ready', 'broken', 'draining', 'sleeping', 'waking', 'gone')
    )
)
"""


# By the calendar month in UTC, its first day: what upstream APIs cost, so that their cap holds over gateways and restarts.
SPENDING = """
CREATE TABLE upstream_spending (
    replica text NOT NULL,
    month date NOT NULL,
    microcents bigint NOT NULL,
    CONSTRAINT upstream_spending_pkey PRIMARY KEY (replica, month),
    CONSTRAINT upstream_spending_not_negative CHECK (microcents >= 0),
    CONSTRAINT upstream_spending_by_month CHECK (date_trunc('month', month) = month)
)
"""


def upgrade() -> None:
    for statements in (REPLICAS, SPENDING):
        op.execute(statements)
