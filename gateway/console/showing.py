"""What a page's thread does: one transaction in which it is found who looks, what they may, and what the page says."""

import asyncio
import hashlib
import hmac
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine
from starlette.requests import Request
from starlette.responses import Response

from gateway.access.addresses import client_address
from gateway.access.permissions import may
from gateway.access.sessions import viewer_of
from gateway.access.viewer import Viewer
from gateway.console.answers import Download, Moved, Shown, Told
from gateway.console.frame import frame_of
from gateway.console.rendering import render
from gateway.console.responses import cookie_name, download, html, moved, told
from gateway.console.table import Page
from gateway.console.visit import DEVICE, SESSION, Visit
from gateway.wiring import House

# What a page may wait for something that only the gateway's own loop can ask.
WAIT_SECONDS = 2.0


class NotSignedIn(Exception):
    """The page is for somebody, and nobody is signed in."""


class Forbidden(Exception):
    """Not for who looks, or a form that did not come from our own page. The message says which."""


@dataclass(frozen=True, slots=True)
class Showing:
    """One look at one page."""

    house: House
    engine: Engine
    loop: asyncio.AbstractEventLoop
    request: Request
    page: Page
    path: Mapping[str, str]
    form: Mapping[str, str]

    def response(self) -> Response:
        """Raises: NotSignedIn, Forbidden, NotHere, and what SQLAlchemy raises where PostgreSQL is away."""
        settings = self.house.settings
        with self.engine.begin() as connection:
            visit = self._visit(connection)
            answer = self.page.show(visit)
            match answer:
                case Moved():
                    return moved(settings, answer)
                case Download():
                    return download(self.request, settings, answer)
                case Told():
                    return told(settings, answer)
                case Shown():
                    return html(self.request, settings, self._written(visit, answer), answer.status)

    def _visit(self, connection: Connection) -> Visit:
        settings = self.house.settings
        now = datetime.fromtimestamp(self.house.clock.now_ms() / 1000, UTC)
        viewer = self._viewer(connection, now)
        headers = self.request.headers
        forwarded = headers.get("x-forwarded-for")
        peer = self.request.client.host if self.request.client else ""
        hops = None if forwarded is None else forwarded.encode("latin-1")
        cookies = {name: self.request.cookies.get(cookie_name(settings, name), "") for name in (DEVICE,)}
        return Visit(
            self.house, connection, viewer, self.path, dict(self.request.query_params), self.form, cookies, self._origin,
            client_address(peer, hops, self.house.trusted_proxies), headers.get("user-agent", ""), now, self._wait,
        )  # fmt: skip

    def _viewer(self, connection: Connection, now: datetime) -> Viewer | None:
        pepper, session = self.house.settings.key_pepper.get_secret_value(), self._session
        viewer = viewer_of(connection, session, pepper=pepper, now=now) if session else None
        if not may((self.page.method, self.page.path), viewer):
            if viewer is None:
                raise NotSignedIn
            raise Forbidden("Your role does not allow this. Who owns the account, or runs this installation, can change that.")
        if self.page.method == "POST" and viewer is not None:
            given = self.form.get("token", "")
            if not hmac.compare_digest(given.encode(), _form_token(pepper, session).encode()):
                raise Forbidden("The form is from an earlier session. Open the page again and send it once more.")
        return viewer

    def _written(self, visit: Visit, answer: Shown) -> bytes:
        token = "" if visit.viewer is None else _form_token(visit.pepper, self._session)
        return render(answer.template, {**frame_of(visit.viewer, self.page.path), "token": token, **answer.facts})

    @property
    def _origin(self) -> str:
        """As the operator said; else as the browser called us."""
        said = self.house.settings.public_url
        return said.rstrip("/") if said else f"http://{self.request.headers.get('host', '')}"

    @property
    def _session(self) -> str:
        return self.request.cookies.get(cookie_name(self.house.settings, SESSION), "")

    def _wait(self, asked: Coroutine[Any, Any, Any]) -> Any:
        async def within() -> Any:
            async with asyncio.timeout(WAIT_SECONDS):
                return await asked

        return asyncio.run_coroutine_threadsafe(within(), self.loop).result()


def _form_token(pepper: str, session: str) -> str:
    """What a form of this session carries: another site can't know it."""
    return hmac.digest(pepper.encode(), b"form " + session.encode(), hashlib.sha256).hex()[:32]
