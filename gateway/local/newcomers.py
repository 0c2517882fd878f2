"""Who is there after the first `up`: an admin, and a demo account on the Free plan with a key."""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, select

import migrations
from billing.accounts import create_account, find_account
from billing.database import open_engine
from billing.seed import seed
from billing.tables import keys
from billing.unknown import AccountUnknown
from gateway.access.issue import Terms, issue_key
from gateway.access.keys import digest
from gateway.access.users import create_user, has_user
from gateway.local.home import Home, write_private

DEMO_ACCOUNT = "demo"
DEMO_EMAIL = "demo@example.com"
DEMO_PLAN = "free"
ADMIN_EMAIL = "admin@example.com"
ACTOR = "faregate up"
# 18 bytes are 24 letters of base64: as hard to guess as the key itself, and still typed in a minute.
PASSWORD_BYTES = 18


@dataclass(frozen=True)
class Newcomers:
    """`admin_password` is there on the first run only; it is not kept anywhere."""

    demo_key: str
    admin_email: str
    admin_password: str | None


def prepare_database(database_url: str) -> None:
    migrations.upgrade(database_url)
    seed(database_url)


def welcome(home: Home, database_url: str, pepper: str) -> Newcomers:
    """Those who are missing are made; a demo key that this folder doesn't have any more is replaced by a new one."""
    engine = open_engine(database_url)
    try:
        with engine.begin() as connection:
            password = _make_admin(connection)
            key = _demo_key(home, connection, pepper)
        return Newcomers(key, ADMIN_EMAIL, password)
    finally:
        engine.dispose()


def _make_admin(connection: Connection) -> str | None:
    if has_user(connection, ADMIN_EMAIL):
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    create_user(connection, email=ADMIN_EMAIL, password=password, role="admin", actor=ACTOR)
    return password


def _demo_key(home: Home, connection: Connection, pepper: str) -> str:
    """The kept one, if it is a key of this database; written before the commit, so that no key exists that nobody has."""
    path = home.secret_file("demo_key")
    if path.exists():
        token = path.read_text().strip()
        known = select(keys.c.id).where(keys.c.hash == digest(pepper, token), keys.c.revoked_at.is_(None))
        if connection.scalar(known) is not None:
            return token
    try:
        account = find_account(connection, DEMO_ACCOUNT)
    except AccountUnknown:
        account = create_account(connection, name=DEMO_ACCOUNT, email=DEMO_EMAIL, plan_code=DEMO_PLAN, actor=ACTOR)
    token = issue_key(connection, account.id, Terms("made by `faregate up`"), pepper=pepper, actor=ACTOR).token
    write_private(path, token)
    return token
