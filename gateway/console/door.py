"""Which paths are the console's; its pages, and all that they import, are loaded when somebody first looks at one."""

from gateway.api.exchange import Receive, Scope, Send
from gateway.wiring import House

FIRST_SEGMENTS = frozenset({"", "sign-in", "sign-out", "sessions", "app", "admin", "ops", "static"})


class Door:
    """One a gateway. Nothing is imported here that calls do not need."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._site: object | None = None

    def leads(self, path: str) -> bool:
        return self._house.settings.console and path[1:].partition("/")[0] in FIRST_SEGMENTS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from gateway.console.site import Site

        if not isinstance(self._site, Site):
            self._site = Site(self._house)
        await self._site(scope, receive, send)
