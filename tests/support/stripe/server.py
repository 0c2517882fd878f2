"""The stand-in on HTTP: the API, its hosted pages, and the controls that begin with an underscore."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.stripe import cards, checkout, pages, payments, portal, post
from tests.support.stripe.api import Api, Asked, Trouble
from tests.support.stripe.faults import Fault
from tests.support.stripe.world import Thing, shown

Handler = Callable[[Request], Awaitable[Response]]


def build(api: Api) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        carrier = asyncio.create_task(api.post.run())
        yield
        carrier.cancel()

    routes = [
        Route("/v1/{path:path}", _api(api), methods=["GET", "POST", "DELETE"]),
        Route("/c/pay/{which}", _checkout(api), methods=["GET", "POST"]),
        Route("/c/pay/{which}/authenticate", _authenticate_checkout(api), methods=["GET", "POST"]),
        Route("/authenticate/{which}", _authenticate(api), methods=["GET", "POST"]),
        Route("/p/session/{which}", _portal(api), methods=["GET", "POST"]),
        Route("/i/{which}", _invoice(api), methods=["GET", "POST"]),
        Route("/_{control}", _control(api), methods=["GET", "POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={Fault: _told})


async def _told(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, Fault)
    if request.url.path.startswith("/_"):
        return JSONResponse(fault.body, fault.status)
    return HTMLResponse(pages.over(str(fault)), fault.status)


def _api(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        text = (await request.body()).decode() if request.method == "POST" else request.url.query
        headers = {name.lower(): value for name, value in request.headers.items()}
        given = api.ask(Asked(request.method, request.url.path, text, headers))
        return JSONResponse(given.body, given.status, headers=given.headers)

    return answer


def _checkout(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        session = api.world.get("checkout.session", request.path_params["which"])
        if session["status"] != "open":
            return HTMLResponse(pages.over(f"This session is {session['status']}."), 410)
        if request.method == "GET":
            return HTMLResponse(pages.checkout(api.world, session))
        given = await _given(request)
        try:
            onward = checkout.submit(
                api.world, session, email=given.get("email", ""), number=given.get("number", ""), code=given.get("code", "")
            )
        except Fault as fault:
            return HTMLResponse(pages.checkout(api.world, session, str(fault)), 402)
        return RedirectResponse(onward, 303)

    return answer


def _authenticate_checkout(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        session = api.world.get("checkout.session", request.path_params["which"])
        if request.method == "GET":
            return HTMLResponse(pages.authenticate())
        if (await _given(request)).get("answer") == "yes":
            return RedirectResponse(checkout.complete(api.world, session), 303)
        return HTMLResponse(pages.checkout(api.world, session, "We are unable to authenticate your payment method."), 402)

    return answer


def _authenticate(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        intent = api.world.get("payment_intent", request.path_params["which"])
        if request.method == "GET":
            return HTMLResponse(pages.authenticate())
        payments.authenticate(api.world, intent, agreed=(await _given(request)).get("answer") == "yes")
        return HTMLResponse(pages.over(f"The payment is now {intent['status']}."))

    return answer


def _portal(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        session = api.world.get("billing_portal.session", request.path_params["which"])
        problem = ""
        if request.method == "POST":
            try:
                _act(api, session, await _given(request))
            except Fault as fault:
                problem = str(fault)
        return HTMLResponse(pages.portal_page(api.world, session, problem), 402 if problem else 200)

    return answer


def _act(api: Api, session: Thing, given: dict[str, str]) -> None:
    match given.get("action"):
        case "change":
            portal.change_price(api.world, session, given["price"])
        case "cancel" | "keep" as word:
            portal.set_cancelled(api.world, session, is_cancelled=word == "cancel")
        case "card":
            portal.change_card(api.world, session, given["number"])
        case other:
            raise Fault(f"There is no button {other!r}.")


def _invoice(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        found = api.world.get("invoice", request.path_params["which"])
        if request.method == "GET":
            return HTMLResponse(pages.invoice(found))
        try:
            checkout.pay_invoice(api.world, found, (await _given(request)).get("number", ""))
        except Fault as fault:
            return HTMLResponse(pages.invoice(found, str(fault)), 402)
        return HTMLResponse(pages.invoice(found))

    return answer


def _control(api: Api) -> Handler:
    async def answer(request: Request) -> Response:
        given: Thing = await request.json() if request.method == "POST" and await request.body() else {}
        return JSONResponse(await _steer(api, request.path_params["control"], given))

    return answer


async def _steer(api: Api, control: str, given: Thing) -> Any:
    """`clock` {to|by}, `webhooks` {habits}, `flush`, `again` {event}, `dunning`, `card`, `trouble`, `forget`, `journal`, ..."""
    world = api.world
    match control:
        case "clock":
            if given:
                world.advance(given.get("to", world.now + given.get("by", 0)))
            return {"now": world.now}
        case "webhooks":
            return {"habits": api.post.set_habits(given), "deliveries": post.as_json(api.post.deliveries)}
        case "flush":
            await api.post.flush()
            return {"deliveries": post.as_json(api.post.deliveries)}
        case "again":
            api.post.again(given["event"])
            return {}
        case "dunning":
            world.retry_days = given.get("retry_days", world.retry_days)
            world.after_retries = given.get("after_retries", world.after_retries)
            return {"retry_days": world.retry_days, "after_retries": world.after_retries}
        case "card":
            cards.misbehave(world, given["customer"], given["behaviour"])
            return {}
        case "trouble":
            api.troubles.append(Trouble(**given))
            return asdict(api.troubles[-1])
        case "forget":
            api.forget()
            return {}
        case "journal":
            return api.journal
        case "things":
            return [shown(one) for one in world.things.values()]
    raise Fault(f"There is no control {control!r}.", status=404)


async def _given(request: Request) -> dict[str, str]:
    """The fields of a page's form."""
    return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
