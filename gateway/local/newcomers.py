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
from gateway.access.users import create_user, find_user, has_user, make_member
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
    """The passwords are there on the first run only; they are not kept anywhere."""

    demo_key: str
    admin_email: str
    admin_password: str | None
    demo_email: str = DEMO_EMAIL
    demo_password: str | None = None


def prepare_database(database_url: str) -> None:
    migrations.upgrade(database_url)
    seed(database_url)


def welcome(home: Home, database_url: str, pepper: str) -> Newcomers:
    """Those who are missing are made; a demo key that this folder doesn't have any more is replaced by a new one."""
    engine = open_engine(database_url)
    try:
        with engine.begin() as connection:
            password = _make_user(connection, ADMIN_EMAIL, "admin")
            key = _demo_key(home, connection, pepper)
            demo_password = _make_demo_user(connection)
        return Newcomers(key, ADMIN_EMAIL, password, demo_password=demo_password)
    finally:
        engine.dispose()


def _make_user(connection: Connection, email: str, role: str) -> str | None:
    """Its password, where there was no such user."""
    if has_user(connection, email):
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    create_user(connection, email=email, password=password, role=role, actor=ACTOR)
    return password


def _make_demo_user(connection: Connection) -> str | None:
    """The owner of the demo account."""
    password = _make_user(connection, DEMO_EMAIL, "developer")
    if password is not None:
        user_id, account = find_user(connection, DEMO_EMAIL), find_account(connection, DEMO_ACCOUNT)
        make_member(connection, account.id, user_id, "owner", actor=ACTOR)
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
