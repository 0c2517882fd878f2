"""The console as one ASGI app: a page is found by its path, its form is read, and a thread shows it."""

import asyncio
from collections.abc import Mapping

import anyio
import anyio.to_thread
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from billing.database import sqlalchemy_url
from gateway.api.exchange import Receive, Scope, Send
from gateway.console.answers import Moved, NotHere
from gateway.console.forms import FormWrong, form_of
from gateway.console.frame import frame_of
from gateway.console.rendering import render
from gateway.console.responses import html, moved, static
from gateway.console.showing import Forbidden, NotSignedIn, Showing
from gateway.console.static_files import PREFIX
from gateway.console.table import PAGES, Page
from gateway.wiring import House

# Pages at once: their threads take the processor from calls.
AT_ONCE = 4
STATEMENT_TIMEOUT_MS = 5_000


class Site:
    """One a gateway. Its connections to PostgreSQL are its own: pages take none from calls."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._engine = _engine(house.settings.database_url.get_secret_value())
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._routes = [(Route(page.path, Response, methods=[page.method]), page) for page in PAGES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        is_file = scope["path"].startswith(PREFIX)
        response = static(request) if is_file else await self._answered(request)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        page, path = self._found(request.scope)
        if page is None:
            return self._said(request, 404, "There is no such page", "It may have moved, or the address has a slip in it.")
        try:
            form = await _form(request)
            showing = Showing(self._house, self._engine, asyncio.get_running_loop(), request, page, path, form)
            return await anyio.to_thread.run_sync(showing.response, limiter=self._limiter)
        except NotSignedIn:
            back = request.scope["path"] if page.method == "GET" else "/app"
            return moved(self._house.settings, Moved(f"/sign-in?next={back}"))
        except Forbidden as error:
            return self._said(request, 403, "This is not yours to do", str(error))
        except NotHere:
            return self._said(request, 404, "There is nothing here", "It was removed, or belongs to another account.")
        except FormWrong as error:
            return self._said(request, 400, "The form could not be read", str(error))
        except (OperationalError, NoConnection) as error:
            self._house.log.warning("page_without_record", path=request.scope["path"], kind=type(error).__name__)
            return self._said(request, 503, "The record is away", _WITHOUT_RECORD)

        except Exception as error:
            told = {"path": request.scope["path"], "error": type(error).__name__, "why": str(error)[:300]}
            self._house.log.error("page_failed", **told)  # noqa: TRY400 - a line of our own log
            return self._said(
                request, 500, "This page failed", "That is our fault, and it is in the log. Calls are not touched by it."
            )

    def _found(self, scope: Scope) -> tuple[Page | None, Mapping[str, str]]:
        for route, page in self._routes:
            match, child = route.matches(scope)
            if match is Match.FULL:
                return page, child["path_params"]
        return None, {}

    def _said(self, request: Request, status: int, title: str, words: str) -> Response:
        facts = {**frame_of(None, ""), "token": "", "title": title, "words": words}
        return html(request, self._house.settings, render("said.html", facts), status)


_WITHOUT_RECORD = (
    "PostgreSQL does not answer, so nothing can be shown or changed here. Calls with keys that are known go on, and what they "
    "use is recorded once it is back."
)


async def _form(request: Request) -> Mapping[str, str]:
    """Only the forms of our own pages are read. Raises: Forbidden, FormWrong."""
    if request.method != "POST":
        return {}
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is None and site is None:
        raise Forbidden("The browser did not say where the form came from.")
    is_ours = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not is_ours or site not in (None, "same-origin"):
        raise Forbidden("The form came from another site. Open the page here and send it again.")
    return await form_of(request)


def _engine(url: str) -> Engine:
    return create_engine(
        sqlalchemy_url(url), pool_size=AT_ONCE, max_overflow=0, pool_timeout=2.0, pool_pre_ping=True,
        connect_args={"connect_timeout": 2, "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS}"},
    )  # fmt: skip
