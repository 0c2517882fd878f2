"""One installation with a running gateway for a module, and people who sign in to it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from uuid import UUID

import pytest
import redis
from argon2 import PasswordHasher
from sqlalchemy import insert
from uuid_utils.compat import uuid7

from billing.tables import users
from gateway.access.sessions import begin
from gateway.access.users import make_member
from gateway.console.visit import SESSION
from tests.console.visitor import Visitor
from tests.journeys.conftest import MODEL as MODEL
from tests.journeys.conftest import standing_engine as standing_engine
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import PEPPER, BuildTown, Customer, Town

PASSWORD = "correct horse battery"


@cache
def hashed() -> str:
    """Argon2 is slow by intention; once is enough."""
    return PasswordHasher().hash(PASSWORD)


@dataclass(frozen=True, slots=True)
class Person:
    email: str
    user_id: UUID
    customer: Customer | None = None


@pytest.fixture(scope="module")
def house(build_town: BuildTown, standing_engine: StandInEngine) -> Iterator[Town]:
    with build_town(standing_engine.fleet_entry()) as built:
        built.standing = built.gateway()
        built.worker()
        yield built
        assert [line for line in built.standing.lines() if line["event"] == "page_failed"] == []


@pytest.fixture(scope="module")
def person(house: Town) -> Callable[..., Person]:
    """Somebody with a role on an account of their own (`""`: on none), or on the installation."""

    def make(role: str = "owner", *, on_installation: str = "developer", customer: Customer | None = None) -> Person:
        if customer is None and role:
            customer = house.key("pro")
        email = f"p{time.monotonic_ns()}@example.com"
        with house.record() as connection:
            values = {"id": uuid7(), "email": email, "password_hash": hashed(), "role": on_installation}
            user_id = connection.execute(insert(users).values(values).returning(users.c.id)).scalar_one()
            if customer is not None:
                make_member(connection, customer.account_id, user_id, role, actor="test")
        return Person(email, user_id, customer)

    return make


@pytest.fixture
def no_tries(house: Town) -> None:
    """All tests come from one address."""
    with redis.Redis.from_url(house.redis_url) as client:
        for key in client.scan_iter("faregate:tries:*"):
            client.delete(key)


@pytest.fixture
def visitor(house: Town, no_tries: None) -> Iterator[Visitor]:
    with Visitor(house.gateway().url) as made:
        yield made


@pytest.fixture
def signed_in(house: Town, no_tries: None) -> Iterator[Callable[[Person], Visitor]]:
    made: list[Visitor] = []

    def sign_in(person: Person) -> Visitor:
        made.append(Visitor(house.gateway().url))
        with house.record() as connection:
            token = begin(
                connection, person.user_id, pepper=PEPPER, now=datetime.now(UTC), address="127.0.0.1", agent="a browser"
            )
        made[-1].client.cookies.set(SESSION, token)
        made[-1].get("/sessions")
        return made[-1]

    yield sign_in
    for one in made:
        one.client.close()
