"""Where PostgreSQL is: one `DATABASE_URL`, spelled for SQLAlchemy or for psycopg."""

_PREFIXES = ("postgresql+psycopg://", "postgresql://", "postgres://")


class DatabaseUrlWrong(Exception):
    """The URL is not one of PostgreSQL."""


def conninfo(url: str) -> str:
    """For psycopg. Raises: DatabaseUrlWrong."""
    return "postgresql://" + after_scheme(url)


def after_scheme(url: str) -> str:
    """Raises: DatabaseUrlWrong."""
    for prefix in _PREFIXES:
        if url.startswith(prefix):
            return url.removeprefix(prefix)
    raise DatabaseUrlWrong("DATABASE_URL must begin with postgresql://, as in postgresql://user:password@host:5432/faregate")
