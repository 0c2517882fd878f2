"""What the stand-in refuses, in the words and statuses of the real API."""

from typing import Any

NOT_STOOD_IN = 501


class Fault(Exception):
    """An error answer. `kind` is Stripe's `type`."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "invalid_request_error", **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": kind, **{name: value for name, value in more.items() if value is not None}}

    @property
    def body(self) -> dict[str, Any]:
        return {"error": self.error}


def missing(kind: str, which: str, param: str = "id") -> Fault:
    """404 when it is the object asked for, 400 when a parameter names it."""
    status = 404 if param == "id" else 400
    return Fault(f"No such {kind.replace('_', ' ')}: '{which}'", status=status, code="resource_missing", param=param)


def not_stood_in(what: str) -> Fault:
    """What the real API can do and this one can't: loud, so that no test leans on it."""
    return Fault(f"The stand-in does not know {what}.", status=NOT_STOOD_IN, kind="api_error")
