"""The first page: what this is, what it costs, and the way in."""

from billing.plan_versions import list_plans
from billing.plans import Plan
from gateway.console.answers import Answer, Shown
from gateway.console.visit import Visit

# Given to who tries, not sold.
NOT_SOLD = ("trial",)


def show(visit: Visit) -> Answer:
    models = [dish.model for dish in visit.house.menu.dishes()]
    return Shown("front.html", {"plans": _on_offer(visit), "models": models, "base_url": visit.base_url})


def _on_offer(visit: Visit) -> list[Plan]:
    """The newest version of each plan that is in effect, cheapest first; what is agreed with each customer comes last."""
    newest: dict[str, Plan] = {}
    for version in list_plans(visit.connection):
        is_on = version.effective_from <= visit.now and (version.retired_at is None or version.retired_at > visit.now)
        if is_on and version.plan.code not in NOT_SOLD:
            newest[version.plan.code] = version.plan
    return sorted(newest.values(), key=lambda plan: (plan.price_cents is None, plan.price_cents, plan.code))
