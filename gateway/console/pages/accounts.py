"""All accounts, as the admin finds them: by name or email, a page at a time."""

from sqlalchemy import or_, select

from billing.entitled import plans_at
from billing.tables import accounts
from billing.usage import used_on
from gateway.console.answers import Answer, Shown
from gateway.console.visit import Visit

PAGE = 50


def show(visit: Visit) -> Answer:
    wanted, after = visit.query.get("q", "").strip(), visit.query.get("after", "")
    c = accounts.c
    query = select(c.id, c.name, c.email, c.state, c.created_at).order_by(c.name).limit(PAGE + 1)
    if wanted:
        query = query.where(or_(c.name.icontains(wanted, autoescape=True), c.email.icontains(wanted, autoescape=True)))
    if after:
        query = query.where(c.name > after)
    found = visit.connection.execute(query).all()
    shown = found[:PAGE]
    ids = [one.id for one in shown]
    terms = plans_at(visit.connection, visit.now, visit.house.settings.grace_days, ids)
    used = used_on(visit.connection, ids, visit.today)
    rows = [(one, terms[one.id], used.get(one.id, 0)) for one in shown]
    return Shown("accounts.html", {"rows": rows, "wanted": wanted, "more": shown[-1].name if len(found) > PAGE else None})
