"""Who may do what in the console: one table, and a route that is not in it is not served."""

from collections.abc import Mapping

from gateway.access.viewer import MEMBERS, Role, Viewer

Route = tuple[str, str]
"""A method, and a path with its parameters in braces."""

EVERYBODY: None = None  # signed in or not
ANYBODY_SIGNED_IN: frozenset[Role] = frozenset({"user"})
MAKES_KEYS: frozenset[Role] = frozenset({"owner", "admin", "developer"})
OPERATES: frozenset[Role] = frozenset({"operator"})
RUNS_THE_PLATFORM: frozenset[Role] = frozenset({"platform"})

MAY: Mapping[Route, frozenset[Role] | None] = {
    ("GET", "/"): EVERYBODY,
    ("GET", "/sign-in"): EVERYBODY,
    ("POST", "/sign-in"): EVERYBODY,
    ("POST", "/sign-out"): ANYBODY_SIGNED_IN,
    ("GET", "/sessions"): ANYBODY_SIGNED_IN,
    ("POST", "/sessions/{id}/end"): ANYBODY_SIGNED_IN,
    ("GET", "/app"): MEMBERS,
    ("GET", "/app/keys"): MEMBERS,
    ("POST", "/app/keys"): MAKES_KEYS,
    ("POST", "/app/keys/{id}/revoke"): MAKES_KEYS,
    ("GET", "/app/playground"): MAKES_KEYS,
    ("POST", "/app/playground/key"): MAKES_KEYS,
    ("GET", "/app/usage"): MEMBERS,
    ("GET", "/app/usage.csv"): MEMBERS,
    ("GET", "/app/requests"): MEMBERS,
    ("GET", "/app/requests/{id}"): MEMBERS,
    ("GET", "/admin"): RUNS_THE_PLATFORM,
    ("GET", "/admin/accounts/{id}"): RUNS_THE_PLATFORM,
    ("POST", "/admin/accounts/{id}/state"): RUNS_THE_PLATFORM,
    ("POST", "/admin/accounts/{id}/plan"): RUNS_THE_PLATFORM,
    ("GET", "/ops"): OPERATES,
    ("POST", "/ops/replicas/{id}"): OPERATES,
}


def may(route: Route, viewer: Viewer | None) -> bool:
    """Raises: KeyError for a route that the table lacks."""
    allowed = MAY[route]
    return allowed is EVERYBODY or (viewer is not None and not allowed.isdisjoint(viewer.roles))
