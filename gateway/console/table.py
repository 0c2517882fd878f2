"""Every page of the console: its method and path, and the function that shows it."""

from collections.abc import Callable
from typing import NamedTuple

from gateway.console.answers import Answer
from gateway.console.pages import account, accounts, fleet, front, keys, overview, playground, requests, sessions, sign_in, usage
from gateway.console.visit import Visit


class Page(NamedTuple):
    """`path` has its parameters in braces, as in gateway/access/permissions.py, which says who may."""

    method: str
    path: str
    show: Callable[[Visit], Answer]


PAGES = (
    Page("GET", "/", front.show),
    Page("GET", "/sign-in", sign_in.show),
    Page("POST", "/sign-in", sign_in.sign_in),
    Page("POST", "/sign-out", sign_in.sign_out),
    Page("GET", "/sessions", sessions.show),
    Page("POST", "/sessions/{id}/end", sessions.end_one),
    Page("GET", "/app", overview.show),
    Page("GET", "/app/keys", keys.show),
    Page("POST", "/app/keys", keys.create),
    Page("POST", "/app/keys/{id}/revoke", keys.revoke),
    Page("GET", "/app/playground", playground.show),
    Page("POST", "/app/playground/key", playground.key),
    Page("GET", "/app/usage", usage.show),
    Page("GET", "/app/usage.csv", usage.download),
    Page("GET", "/app/requests", requests.show),
    Page("GET", "/app/requests/{id}", requests.receipt),
    Page("GET", "/admin", accounts.show),
    Page("GET", "/admin/accounts/{id}", account.show),
    Page("POST", "/admin/accounts/{id}/state", account.set_state),
    Page("POST", "/admin/accounts/{id}/plan", account.give_plan),
    Page("GET", "/ops", fleet.show),
    Page("POST", "/ops/replicas/{id}", fleet.ask),
)
