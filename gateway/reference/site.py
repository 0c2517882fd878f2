"""Where the reference is served: written once when the gateway starts, open to everybody."""

from collections.abc import Awaitable, Callable

import orjson
from fastapi import FastAPI
from fastapi.responses import Response

from gateway.reference.document import openapi
from gateway.reference.markdown import guide, whole
from gateway.reference.page import page, policy

# It changes with the program alone.
_KEPT = {"cache-control": "public, max-age=300", "x-content-type-options": "nosniff"}


def serve_reference(app: FastAPI) -> None:
    """`/openapi.json`, `/docs`, `/llms.txt`, `/llms-full.txt`."""
    document = openapi()
    guarded = {**_KEPT, "content-security-policy": policy(), "referrer-policy": "no-referrer"}
    for path, answer in (
        ("/openapi.json", Response(orjson.dumps(document), headers=_KEPT, media_type="application/json")),
        ("/docs", Response(page(document), headers=guarded, media_type="text/html")),
        ("/llms.txt", Response(guide(document), headers=_KEPT, media_type="text/plain")),
        ("/llms-full.txt", Response(whole(document), headers=_KEPT, media_type="text/plain")),
    ):
        app.add_api_route(path, _always(answer), methods=["GET", "HEAD"])


def _always(answer: Response) -> Callable[[], Awaitable[Response]]:
    async def show() -> Response:
        return Response(answer.body, headers=dict(answer.headers))

    return show
