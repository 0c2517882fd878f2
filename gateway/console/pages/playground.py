"""A conversation with a model, in the browser: it calls the API as any client does, with a key that ends within the hour."""

from datetime import timedelta

from billing.entitled import plans_at
from gateway.access.issue import Key, Terms, issue_key
from gateway.console.answers import Answer, Shown, Told
from gateway.console.visit import Visit
from models.catalogue import Model

KEY_NAME = "playground"
KEY_LASTS = timedelta(hours=1)


def show(visit: Visit) -> Answer:
    return Shown("playground.html", {"models": _models(visit), "base_url": visit.base_url})


def key(visit: Visit) -> Answer:
    terms = Terms(KEY_NAME, scopes=("inference",), expires_at=visit.now + KEY_LASTS)
    issued = issue_key(visit.connection, visit.account_id, terms, pepper=visit.pepper, actor=visit.who.actor)
    return Told({"key": issued.token})


def was_for_a_playground(key: Key) -> bool:
    return key.terms.name == KEY_NAME


def _models(visit: Visit) -> list[Model]:
    """Those that can be talked to, and that the account's plan opens."""
    term = plans_at(visit.connection, visit.now, visit.house.settings.grace_days, [visit.account_id])[visit.account_id]
    served = visit.house.menu.pools(visit.who.account_name or "")
    models = [visit.house.catalogue.resolve(model_id) for model_id in served]
    return sorted((one for one in models if one.kind == "chat" and term.plan.opens(one.tier)), key=lambda one: one.name)
