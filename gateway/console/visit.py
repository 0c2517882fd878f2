"""One look at a page: who looks, at what, with which form, and what its function may ask."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from gateway.access.viewer import Viewer
from gateway.console.answers import NotHere
from gateway.wiring import House

# The cookies, by the names that they have without https.
SESSION, DEVICE = "faregate_session", "faregate_device"


@dataclass(frozen=True, slots=True)
class Visit:
    """`connection` is in one transaction, which is committed when the page's function returns.

    `origin` is where browsers find us, as in `https://faregate.example`. `wait` runs a coroutine on the gateway's loop: page
    functions run in threads of their own. `query` and `form` have one value a name, the last one.
    """

    house: House
    connection: Connection
    viewer: Viewer | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    origin: str
    address: str
    agent: str
    now: datetime
    wait: Callable[[Coroutine[Any, Any, Any]], Any]

    @property
    def who(self) -> Viewer:
        """Of a page that is not for everybody."""
        assert self.viewer is not None
        return self.viewer

    @property
    def account_id(self) -> UUID:
        """Of a page for members."""
        assert self.who.account_id is not None
        return self.who.account_id

    @property
    def pepper(self) -> str:
        return self.house.settings.key_pepper.get_secret_value()

    @property
    def base_url(self) -> str:
        """For SDKs."""
        return f"{self.origin}/v1"

    @property
    def today(self) -> date:
        return self.now.astimezone(UTC).date()

    def id_in_path(self) -> UUID:
        """Raises: NotHere."""
        try:
            return UUID(self.path["id"])
        except ValueError:
            raise NotHere from None

    def days_asked(self, most: int = 400, usual: int = 30) -> int:
        """`?days=`, today included; what can't be is the usual."""
        text = self.query.get("days", "")
        return min(most, max(1, int(text))) if text.isascii() and text.isdigit() and len(text) < 6 else usual

    def first_of(self, days: int) -> date:
        return self.today - timedelta(days=days - 1)
