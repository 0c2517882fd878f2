"""The fleet at run time: which replicas there are beside the fleet file's, and in which state each is."""

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


def upgrade() -> None:
    op.execute(REPLICAS)
