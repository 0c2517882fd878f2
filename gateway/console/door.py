"""Which paths are the console's; its pages, and all that they import, are loaded when somebody first looks at one."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.api.exchange import Receive, Scope, Send
from gateway.wiring import House

FIRST_SEGMENTS = frozenset({"sign-in", "sign-out", "sessions", "app", "admin", "ops", "static"})

Site = Callable[[Scope, Receive, Send], Awaitable[None]]


class Door:
    """One a gateway. Nothing is imported here that calls do not need."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._site: Site | None = None

    def leads(self, path: str) -> bool:
        """What two readers could take for two paths is nobody's."""
        is_ours = path == "/" or (path.startswith("/") and path[1:].partition("/")[0] in FIRST_SEGMENTS)
        return is_ours and self._house.settings.console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._site is None:
            site = await asyncio.to_thread(_site)  # half a second of imports, beside the calls and not before them
            self._site = self._site or site(self._house)
        await self._site(scope, receive, send)


def _site() -> Callable[[House], Site]:
    from gateway.console import site

    return site.Site
