"""Every route, every role: the answer that the table says, and no route beside the table."""

from collections.abc import Callable

import pytest

from gateway.access.permissions import MAY, Route, may
from gateway.access.viewer import MEMBERS
from gateway.console.table import PAGES
from tests.console.conftest import Person
from tests.console.visitor import Visitor
from tests.support.gateway import Town

SOMEBODY_ELSES = "01940000-0000-7000-8000-000000000000"
ROLES = (*sorted(MEMBERS), "operator", "platform", "nobody", "anonymous")
# What is made of a role on the installation.
ON_INSTALLATION = {"operator": "operator", "platform": "admin", "nobody": "developer"}


def test_the_table_has_every_page_and_nothing_else() -> None:
    assert {(page.method, page.path) for page in PAGES} == MAY.keys()
    assert len(PAGES) == len(MAY)


@pytest.fixture(scope="module")
def people(house: Town, person: Callable[..., Person]) -> dict[str, Person]:
    return {
        role: person(role) if role in MEMBERS else person("", on_installation=ON_INSTALLATION[role])
        for role in ROLES
        if role != "anonymous"
    }


def allowed(route: Route, role: str) -> bool:
    roles = MAY[route]
    if roles is None or role == "anonymous":
        return roles is None
    mine = {"user", role} if role != "platform" else {"user", "platform", "operator"}
    return bool(mine & set(roles))


@pytest.mark.parametrize("role", ROLES)
def test_each_route_answers_each_role_as_the_table_says(
    role: str, people: dict[str, Person], signed_in: Callable[[Person], Visitor], visitor: Visitor
) -> None:
    browser = visitor if role == "anonymous" else signed_in(people[role])
    wrong = []
    for method, path in sorted(MAY, key=lambda route: route[1] == "/sign-out"):
        at = path.replace("{id}", SOMEBODY_ELSES)
        answer = browser.get(at) if method == "GET" else browser.post(at)
        if allowed((method, path), role):
            is_right = answer.status_code in (200, 303, 404, 422) and "next=" not in answer.headers.get("location", "")
        elif role == "anonymous":
            is_right = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in?next=")
        else:
            is_right = answer.status_code == 403
        if not is_right:
            wrong.append((method, path, answer.status_code))
    assert wrong == []


def test_an_admin_of_one_account_is_none_of_another(people: dict[str, Person], signed_in: Callable[[Person], Visitor]) -> None:
    other = people["developer"].customer
    assert other is not None
    browser = signed_in(people["owner"])
    assert browser.post(f"/app/keys/{other.key_id}/revoke").status_code == 404
    assert browser.get(f"/admin/accounts/{other.account_id}").status_code == 403


def test_what_changes_something_is_for_those_who_answer_for_it() -> None:
    """The table itself: the test of each route and role takes it at its word."""
    answering = {"/app": {"owner", "admin", "developer"}, "/admin": {"platform"}, "/ops": {"operator"}}
    for (method, path), roles in MAY.items():
        area = "/" + path.split("/")[1]
        if roles is None:
            assert path in ("/", "/sign-in")
        elif method == "POST" and area in answering:
            assert roles <= answering[area], path
        elif area != "/app":
            assert roles <= answering.get(area, {"user"}), path
        else:
            assert roles <= MEMBERS, path


def test_who_is_nobody_may_nothing_that_is_somebodys() -> None:
    assert [route for route in MAY if may(route, None)] == [route for route, roles in MAY.items() if roles is None]
