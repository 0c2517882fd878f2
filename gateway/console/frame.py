"""What stands around every page: who is signed in, and where they may go."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.access.permissions import may
from gateway.access.viewer import Viewer


class Place(NamedTuple):
    """`covers`: the paths under it count as being there."""

    path: str
    name: str
    covers: tuple[str, ...] = ()


GROUPS: tuple[tuple[str, tuple[Place, ...]], ...] = (
    (
        "Build",
        (
            Place("/app", "Overview"),
            Place("/app/playground", "Playground"),
            Place("/app/keys", "Keys"),
            Place("/app/usage", "Usage"),
            Place("/app/requests", "Requests", ("/app/requests/{id}",)),
        ),
    ),
    ("Administer", (Place("/admin", "Accounts", ("/admin/accounts/{id}",)),)),
    ("Operate", (Place("/ops", "Fleet"),)),
)


def frame_of(viewer: Viewer | None, path: str) -> Mapping[str, Any]:
    """`path` is the page's own, with its parameters in braces."""
    groups = [
        (title, [(place, path == place.path or path in place.covers) for place in places if may(("GET", place.path), viewer)])
        for title, places in GROUPS
    ]
    return {"viewer": viewer, "groups": [(title, places) for title, places in groups if places]}


def home_of(viewer: Viewer) -> str:
    """Where somebody goes who has just signed in."""
    for _, places in GROUPS:
        for place in places:
            if may(("GET", place.path), viewer):
                return place.path
    return "/sessions"
