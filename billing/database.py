"""PostgreSQL for administration, through SQLAlchemy."""

from sqlalchemy import Engine, create_engine

from billing.conninfo import after_scheme


def sqlalchemy_url(url: str) -> str:
    """Raises: DatabaseUrlWrong."""
    return "postgresql+psycopg://" + after_scheme(url)


def open_engine(url: str) -> Engine:
    """A small synchronous pool. Raises: DatabaseUrlWrong."""
    return create_engine(sqlalchemy_url(url), pool_size=2, pool_pre_ping=True, connect_args={"connect_timeout": 5})
