"""API keys: listed, made (and shown once), revoked."""

from datetime import timedelta
from typing import Any

from gateway.access.issue import Key, KeyNotThere, KeyWrong, Terms, find_key, issue_key, list_keys, revoke_key
from gateway.access.permissions import may
from gateway.console.answers import Answer, Moved, NotHere, Shown
from gateway.console.pages.playground import was_for_a_playground
from gateway.console.visit import Visit

LIFETIMES = {"": None, "30": timedelta(days=30), "90": timedelta(days=90), "365": timedelta(days=365)}


def show(visit: Visit) -> Answer:
    return _page(visit)


def create(visit: Visit) -> Answer:
    try:
        with visit.connection.begin_nested():  # a refusal of the database ends this part alone
            issued = issue_key(visit.connection, visit.account_id, _terms(visit), pepper=visit.pepper, actor=visit.who.actor)
    except KeyWrong as wrong:
        return _page(visit, 422, wrong=str(wrong))
    return _page(visit, made=issued)


def revoke(visit: Visit) -> Answer:
    try:
        key = find_key(visit.connection, visit.id_in_path())
    except KeyNotThere:
        raise NotHere from None
    if key.account_id != visit.account_id:
        raise NotHere
    revoke_key(visit.connection, key.id, actor=visit.who.actor)
    return Moved("/app/keys")


def _terms(visit: Visit) -> Terms:
    """Raises: KeyWrong."""
    days, quota = visit.form.get("days", ""), visit.form.get("quota", "")
    if days not in LIFETIMES:
        raise KeyWrong("Choose one of the lifetimes.")
    if quota and not (quota.isascii() and quota.isdigit() and len(quota) <= 12):
        raise KeyWrong("A key's own cap is a number of requests a day, or nothing.")
    lifetime = LIFETIMES[days]
    return Terms(
        visit.form.get("name", ""), quota_per_day=int(quota) if quota else None,
        expires_at=None if lifetime is None else visit.now + lifetime,
    )  # fmt: skip


def _page(visit: Visit, status: int = 200, **more: Any) -> Shown:
    found = [key for key in list_keys(visit.connection, visit.account_id) if not was_for_a_playground(key)]

    def state(key: Key) -> str:
        return key.state(visit.now)

    active = [key for key in found if state(key) == "active"]
    facts = {
        "active": active, "ended": [(key, state(key)) for key in found if key not in active], "made": None, "wrong": None,
        "may_make": may(("POST", "/app/keys"), visit.viewer), "base_url": visit.base_url, **more,
    }  # fmt: skip
    return Shown("keys.html", facts, status)
