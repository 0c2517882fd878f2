"""Signing in: with a password, within bounds, into a session that can be ended; and what another site can't do with it."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
import redis
from sqlalchemy import select, update

from gateway.access.sessions import IDLE, LONGEST
from gateway.access.sign_in_tries import ADDRESS_TRIES, DEVICE_TRIES, EMAIL_TRIES, WINDOW_SECONDS, SignInTries, TooManyTries
from gateway.access.tables import sessions
from gateway.valkey import Valkey
from tests.console.conftest import PASSWORD, Person
from tests.console.visitor import Visitor
from tests.support.gateway import PEPPER, Town


def test_a_developer_lands_on_the_overview_and_an_admin_on_the_accounts(
    person: Callable[..., Person], visitor: Visitor, house: Town
) -> None:
    assert visitor.sign_in(person().email.upper(), PASSWORD).headers["location"] == "/app"
    with Visitor(house.gateway().url) as other:
        assert other.sign_in(person("", on_installation="admin").email, PASSWORD).headers["location"] == "/admin"


def test_the_cookie_is_for_this_site_alone_and_its_token_is_kept_nowhere(
    person: Callable[..., Person], visitor: Visitor, house: Town
) -> None:
    cookie = visitor.sign_in(person().email, PASSWORD).headers.get_list("set-cookie")[0]
    token = re.match(r"faregate_session=([\w-]{43});", cookie)
    assert token is not None
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    with house.record() as connection:
        kept = connection.execute(select(sessions)).all()
    assert token[1].encode() not in b"".join(row.hash for row in kept)
    assert token[1] not in str(kept)


@pytest.mark.parametrize("password", ["wrong", "", PASSWORD + " "[:0] + "x", "a" * 5000])
def test_a_wrong_password_and_an_unknown_email_are_told_alike(
    person: Callable[..., Person], visitor: Visitor, password: str
) -> None:
    known = visitor.sign_in(person().email, password)
    unknown = visitor.sign_in("nobody@example.com", password)
    assert known.status_code == unknown.status_code == 422
    said = [re.search(r'role="alert">([^<]+)<', answer.text) for answer in (known, unknown)]
    assert said[0] is not None
    assert said[1] is not None
    assert said[0][1] == said[1][1]
    assert "set-cookie" not in known.headers


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "javascript:1"])
def test_nobody_is_sent_to_another_site_after_signing_in(person: Callable[..., Person], visitor: Visitor, to: str) -> None:
    visitor.post_as({"origin": visitor.url}, "/sign-in", email=person().email, password=PASSWORD, next=to)
    assert visitor.page.headers["location"] == "/app"


def test_a_page_that_needs_a_session_is_come_back_to(person: Callable[..., Person], visitor: Visitor) -> None:
    where = visitor.get("/app/usage").headers["location"]
    assert where == "/sign-in?next=/app/usage"
    assert 'name="next" value="/app/usage"' in visitor.get(where).text


def test_guesses_at_a_password_end_and_the_owner_still_gets_in(person: Callable[..., Person], house: Town) -> None:
    victim = person()
    with Visitor(house.gateway().url) as own, Visitor(house.gateway().url) as thief:
        assert own.sign_in(victim.email, PASSWORD).status_code == 303
        answers = [thief.sign_in(victim.email, f"guess {n}").status_code for n in range(EMAIL_TRIES + 2)]
        assert answers == [422] * EMAIL_TRIES + [429] * 2
        assert thief.sign_in(victim.email, PASSWORD).status_code == 429  # not even with the right one
        own.post("/sign-out")
        assert own.sign_in(victim.email, PASSWORD).status_code == 303


@pytest.fixture
async def tries(valkey_url: str) -> AsyncIterator[SignInTries]:
    valkey = Valkey(valkey_url, 2_000)
    await valkey.start()
    yield SignInTries(valkey, PEPPER)
    await valkey.close()


async def test_a_browser_that_is_known_has_bounds_of_its_own(tries: SignInTries) -> None:
    device = tries.device_of("a@example.com")
    for n in range(DEVICE_TRIES):
        await tries.count("a@example.com", f"10.0.0.{n}", device)
    with pytest.raises(TooManyTries):
        await tries.count("a@example.com", "10.0.1.1", device)
    assert not tries.is_known("b@example.com", device)


async def test_an_address_may_succeed_as_often_as_it_likes_and_fail_so_often(tries: SignInTries) -> None:
    for n in range(2 * ADDRESS_TRIES):
        await tries.count(f"{n}@example.com", "10.0.0.1", "")
        await tries.succeeded(f"{n}@example.com", "10.0.0.1", "")
    for n in range(ADDRESS_TRIES):
        await tries.count(f"{n}@example.com", "10.0.0.1", "")
    with pytest.raises(TooManyTries):
        await tries.count("last@example.com", "10.0.0.1", "")


async def test_no_count_outlives_its_window(tries: SignInTries, valkey_url: str) -> None:
    """One whose end was set apart from its beginning could stay, and keep somebody out for ever."""
    await tries.count("a@example.com", "10.0.0.1", "")
    with redis.Redis.from_url(valkey_url) as client:
        counters = list(client.scan_iter("faregate:tries:*"))
        assert len(counters) == 2
        assert all(0 < client.ttl(key) <= WINDOW_SECONDS for key in counters)
        client.flushall()
        await tries.succeeded("a@example.com", "10.0.0.1", "")  # after the window: nothing to take back
        assert client.dbsize() == 0


def test_a_session_is_over_when_it_is_ended_idle_or_old(
    person: Callable[..., Person], signed_in: Callable[[Person], Visitor], house: Town
) -> None:
    who = person()
    first, second = signed_in(who), signed_in(who)
    other = re.search(r"/sessions/([0-9a-f-]{36})/end", second.get("/sessions").text)
    assert other is not None
    assert second.post(f"/sessions/{other[1]}/end").status_code == 303
    assert first.get("/app").status_code == 303
    assert second.get("/app").status_code == 200
    for column, age in ((sessions.c.seen_at, IDLE), (sessions.c.began_at, LONGEST)):
        third = signed_in(who)
        with house.record() as connection:
            connection.execute(update(sessions).values({column: column - age - timedelta(seconds=1)}))
        assert third.get("/app").status_code == 303


def test_signing_out_ends_the_session_itself(person: Callable[..., Person], signed_in: Callable[[Person], Visitor]) -> None:
    browser = signed_in(person())
    cookies = dict(browser.client.cookies)
    browser.post("/sign-out")
    browser.client.cookies.update(cookies)
    assert browser.get("/app").status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {},
    ],
)
def test_another_sites_form_changes_nothing(
    person: Callable[..., Person], signed_in: Callable[[Person], Visitor], headers: dict[str, str]
) -> None:
    browser = signed_in(person())
    assert browser.post_as(headers, "/app/keys", token=browser.token, name="theirs").status_code == 403
    assert "theirs" not in browser.get("/app/keys").text


@pytest.mark.parametrize("token", ["", "0" * 32])
def test_a_form_without_the_sessions_own_token_changes_nothing(
    person: Callable[..., Person], signed_in: Callable[[Person], Visitor], token: str
) -> None:
    browser = signed_in(person())
    assert browser.post_as({"origin": browser.url}, "/app/keys", token=token, name="theirs").status_code == 403
    assert "theirs" not in browser.get("/app/keys").text
