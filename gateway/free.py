"""What costs no fare: the model list, the key's own limits, and clear answers for paths and methods that are not served."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from gateway.access.caller import Caller, refusal
from gateway.api.chunks import CHUNKS
from gateway.api.dialect import Dialect
from gateway.api.endpoints import PAID
from gateway.api.exchange import Exchange
from gateway.api.message_models import VERSION_HEADER, model_info, model_page
from gateway.api.messages import MESSAGES
from gateway.api.models import model_card, model_list
from gateway.api.own_key import describe_key
from gateway.api.refusals import kinds, refusal_of
from gateway.api.responses import RESPONSES, not_stored
from gateway.api.who import identify
from gateway.errors import Refusal
from gateway.health import readiness
from gateway.reference.site import serve_reference
from gateway.wiring import House

FREE = (
    "GET /v1/models",
    "GET /v1/models/{id}",
    "GET /v1/key",
    "GET /v1/queue/{id}",
    "GET /healthz",
    "GET /readyz",
    "GET /docs",
    "GET /openapi.json",
    "GET /llms.txt",
)
# A caller on these pages was not checked by the gate, so its snapshot may be no older than this.
SNAPSHOT_SECONDS = 1.0
# Of what a client calls a request id; ours have 36 letters.
ID_LENGTH_MAX = 64


def free_app(house: House) -> FastAPI:
    app = FastAPI(title="Faregate", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    # By kind: what is handled as plain `Exception` is reported as a crash as well.
    handled: tuple[type[Exception], ...] = (HTTPException, *kinds(), Exception)
    for kind in handled:
        app.add_exception_handler(kind, _handler(house))

    async def caller_of(request: Request) -> Caller:
        exchange = Exchange(request.scope, request.receive, house.clock.new_request_id(), CHUNKS)
        caller = await identify(house, exchange, seconds_old=SNAPSHOT_SECONDS)
        refusal(caller, None, exchange.address, house.clock.now_ms(), scope="read")
        return caller

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, Any]:
        caller = await caller_of(request)
        if VERSION_HEADER in request.headers:
            return model_page(house.menu, caller, request.query_params)
        return model_list(house.catalogue, house.menu.pools(caller.account_name), caller)

    @app.get("/v1/models/{model:path}")
    async def model(request: Request, model: str) -> dict[str, Any]:
        caller = await caller_of(request)
        if VERSION_HEADER in request.headers:
            return model_info(house.menu, caller, model)
        return model_card(house.catalogue, house.menu.pools(caller.account_name), caller, model)

    @app.get("/v1/key")
    async def key(request: Request) -> dict[str, Any]:
        return await describe_key(house, await caller_of(request))

    @app.get("/v1/queue/{request_id}")
    async def queue(request: Request, request_id: str) -> dict[str, Any]:
        """Where one of the key's own calls stands that waits for a slot."""
        caller = await caller_of(request)
        return await house.standings.find(request_id[:ID_LENGTH_MAX], caller.account_id, caller.key_id)

    @app.api_route("/healthz", methods=["GET", "HEAD"])
    async def alive() -> dict[str, str]:
        return {"status": "alive"}

    @app.api_route("/readyz", methods=["GET", "HEAD"])
    async def ready() -> Response:
        """For load balancers; why it is not ready is on the operators' port."""
        is_ready = not readiness(house)
        return Response(
            b'{"ready":true}' if is_ready else b'{"ready":false}', 200 if is_ready else 503, media_type="application/json"
        )

    serve_reference(app)
    return app


def _handler(house: House) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        request_id = house.clock.new_request_id()
        if isinstance(error, HTTPException):
            found = _not_served(request, error)
        else:
            found = refusal_of(error, house.clock.now_ms())
            if found.status >= 500 and not isinstance(error, Refusal):
                house.log.error(
                    "page_failed", id=request_id, path=request.url.path, error=type(error).__name__, why=str(error)[:300]
                )
        dialect = _dialect_of(request)
        status, told, body = dialect.refused(found, request_id.encode())
        headers = {name.decode(): value.decode() for name, value in (*told, *dialect.identity(request_id.encode()))}
        if status == 405:
            headers["allow"] = "POST" if request.url.path in PAID else "GET, HEAD"
        return Response(body, status, headers)

    return answer


def _dialect_of(request: Request) -> Dialect:
    """Whose errors are understood: a path below `/v1/messages`, and the header, are Anthropic's."""
    path = request.url.path
    is_message = path == MESSAGES.path or path.startswith(f"{MESSAGES.path}/") or VERSION_HEADER in request.headers
    return MESSAGES.dialect if is_message else CHUNKS


def _not_served(request: Request, error: HTTPException) -> Refusal:
    path, method = request.url.path, request.method
    if path in PAID or error.status_code == 405:
        allowed = "POST" if path in PAID else "GET"
        return Refusal(405, f"{path} takes {allowed} requests, not {method}.", code="method_not_allowed")
    if path.startswith(f"{RESPONSES.path}/"):
        return not_stored(path)
    served = ", ".join([*(f"POST {paid}" for paid in PAID), *FREE])
    return Refusal(404, f"{method} {path[:200]} is not served here. Served are: {served}.", code="not_found")
