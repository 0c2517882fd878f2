"""A seeded database of one's own, and a connection into it whose work is rolled back with the test."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from billing.database import open_engine
from billing.seed import seed


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    seed(database_url)
    engine = open_engine(database_url)
    with engine.connect() as opened, opened.begin() as transaction:
        yield opened
        transaction.rollback()
    engine.dispose()
