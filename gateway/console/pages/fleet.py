"""The fleet as all gateways have it in common, and as this one sees it: states, load, who waits; drain and undrain."""

from typing import Any

from backends.classes import CLASSES
from backends.states import Event, NotPossible
from gateway.console.answers import Answer, Moved, NotHere, Shown
from gateway.console.visit import Visit
from gateway.fleet.record import Recorded, ReplicaUnknown, change, recorded
from gateway.fleet.views import FLEET_KEY, View, heard, of_replica, running
from gateway.health import readiness
from gateway.valkey import ValkeyRefused, ValkeyUnavailable
from gateway.wiring import House


def show(visit: Visit) -> Answer:
    return _page(visit)


def ask(visit: Visit) -> Answer:
    event = visit.form.get("event", "")
    if event not in (Event.DRAIN, Event.UNDRAIN):
        return _page(visit, 422, wrong="A replica is drained or undrained here.")
    try:
        change(visit.connection, visit.path["id"], Event(event), actor=visit.who.actor)
    except ReplicaUnknown:
        raise NotHere from None
    except NotPossible as refused:
        return _page(visit, 422, wrong=f"{visit.path['id']}: {refused}.")
    return Moved("/ops")


def _page(visit: Visit, status: int = 200, **more: Any) -> Shown:
    views, own = _views(visit), visit.wait(_own(visit.house))
    rows = [_row(one, views or {}) for one in recorded(visit.connection) if one.state != "gone"]
    facts = {
        "rows": rows, "classes": list(CLASSES), "gateways": None if views is None else sorted(views), "wrong": None,
        **own, **more,
    }  # fmt: skip
    return Shown("fleet.html", facts, status)


async def _own(house: House) -> dict[str, Any]:
    """What this gateway alone knows; asked on its loop, where calls come and go."""
    pools = [(pool, house.queue.running(pool), house.queue.waiting_by_class(pool)) for pool in house.menu.pool_names()]
    return {"own": house.settings.gateway_id, "pools": pools, "problems": readiness(house)}


def _row(one: Recorded, views: dict[str, dict[str, View]]) -> dict[str, Any]:
    seen = of_replica(views.values(), one.id)
    first = seen[0] if seen else None
    return {
        "id": one.id, "state": str(one.state), "origin": one.origin, "changed_at": one.changed_at,
        "model": first.model if first else None, "slots": first.slots if first else None, "running": running(views, one.id),
        "well": sum(view.is_well for view in seen), "seen": len(seen),
    }  # fmt: skip


def _views(visit: Visit) -> dict[str, dict[str, View]] | None:
    """By gateway; None while Valkey is away."""

    async def read() -> Any:
        return await visit.house.valkey.call("HGETALL", FLEET_KEY)

    try:
        found = visit.wait(read())
    except (ValkeyUnavailable, ValkeyRefused, TimeoutError):
        return None
    fields = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    return heard(fields, visit.house.clock.now_ms())[0]
