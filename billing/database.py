"""How PostgreSQL is reached: one `DATABASE_URL`, spelled for SQLAlchemy or for psycopg."""

from sqlalchemy import Engine, create_engine

_PREFIXES = ("postgresql+psycopg://", "postgresql://", "postgres://")


class DatabaseUrlWrong(Exception):
    """The URL is not one of PostgreSQL."""


def sqlalchemy_url(url: str) -> str:
    """Raises: DatabaseUrlWrong."""
    return "postgresql+psycopg://" + _after_scheme(url)


def conninfo(url: str) -> str:
    """For psycopg itself. Raises: DatabaseUrlWrong."""
    return "postgresql://" + _after_scheme(url)


def open_engine(url: str) -> Engine:
    """A small synchronous pool for administration. Raises: DatabaseUrlWrong."""
    return create_engine(sqlalchemy_url(url), pool_size=2, pool_pre_ping=True, connect_args={"connect_timeout": 5})


def _after_scheme(url: str) -> str:
    for prefix in _PREFIXES:
        if url.startswith(prefix):
            return url.removeprefix(prefix)
    raise DatabaseUrlWrong("DATABASE_URL must begin with postgresql://, as in postgresql://user:password@host:5432/faregate")
