"""The one chain of schema changes, and `upgrade`, which applies it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine, text

from billing.database import sqlalchemy_url

# Any number will do, as long as nothing else in this database takes the same advisory lock.
_LOCK = 0xFA4E_6A7E


def upgrade(database_url: str) -> None:
    """Bring the schema to `head()`, all or nothing. Two at once are safe: the second waits, then has nothing to do."""
    engine = create_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def head() -> str:
    """The newest revision in the chain."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    if revision is None:
        raise LookupError("the chain of migrations is empty: the installation is damaged, install Faregate again")
    return revision


def current(database_url: str) -> str | None:
    """The revision that the database is at; None if it was never migrated."""
    engine = create_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    with engine.connect() as connection:
        if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
            return None
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
