"""What pages say while PostgreSQL or Valkey is away."""

import copy
from collections.abc import Callable

from tests.console.conftest import Person
from tests.console.visitor import Visitor
from tests.support.gateway import Running, Town

NOWHERE = "127.0.0.1:1"


def gateway_of(house: Town, **urls: str) -> Running:
    """Another one of the same installation, which looks for a store elsewhere."""
    elsewhere = copy.copy(house)
    elsewhere.standing = None
    for name, url in urls.items():
        setattr(elsewhere, name, url)
    return elsewhere.gateway()


def test_without_postgresql_a_page_says_what_still_works(house: Town) -> None:
    gateway = gateway_of(house, database_url=f"postgresql://nobody@{NOWHERE}/none")
    with Visitor(gateway.url) as other:
        page = other.get("/")
    assert page.status_code == 503
    assert "The record is away" in page.text
    assert "Calls with keys that are known go on" in page.text


def test_without_valkey_figures_are_those_recorded_and_nobody_can_guess_at_passwords(
    person: Callable[..., Person], signed_in: Callable[[Person], Visitor], house: Town
) -> None:
    who = person()
    cookies = dict(signed_in(who).client.cookies)
    gateway = gateway_of(house, redis_url=f"redis://{NOWHERE}/0")
    with Visitor(gateway.url) as other:
        assert other.sign_in(who.email, "x").status_code == 503
        other.client.cookies.update(cookies)
        page = other.get("/app")
    assert page.status_code == 200
    assert "The live count is away" in page.text
