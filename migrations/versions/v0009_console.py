"""Who may see which account, and who is signed in."""

from alembic import op

revision = "v0009"
down_revision = "v0008"
branch_labels = None
depends_on = None

MEMBERS = """
CREATE TABLE members (
    account_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT members_pkey PRIMARY KEY (account_id, user_id),
    CONSTRAINT members_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT members_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT members_role_known CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'viewer'))
);
CREATE INDEX members_user_id_idx ON members (user_id);
INSERT INTO members (account_id, user_id, role) SELECT account_id, id, 'owner' FROM users WHERE account_id IS NOT NULL;
ALTER TABLE users DROP COLUMN account_id
"""

SESSIONS = """
CREATE TABLE sessions (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    hash bytea NOT NULL,
    account_id uuid,
    address text NOT NULL,
    agent text NOT NULL,
    began_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_hash_key UNIQUE (hash),
    CONSTRAINT sessions_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT sessions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT sessions_hash_is_sha256 CHECK (length(hash) = 32)
);
CREATE INDEX sessions_user_id_idx ON sessions (user_id)
"""


def upgrade() -> None:
    for statements in (MEMBERS, SESSIONS):
        op.execute(statements)
