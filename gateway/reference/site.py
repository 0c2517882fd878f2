"""Where the reference is served: each page written when it is first asked for, open to everybody."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.responses import Response

from gateway.reference.document import openapi
from gateway.reference.markdown import guide, whole

# It changes with the program alone.
_KEPT = {"cache-control": "public, max-age=300", "x-content-type-options": "nosniff"}


def serve_reference(app: FastAPI) -> None:
    """`/openapi.json`, `/docs`, `/llms.txt`, `/llms-full.txt`."""
    document = cache(openapi)
    for path, answer in (
        ("/openapi.json", lambda: Response(orjson.dumps(document()), headers=_KEPT, media_type="application/json")),
        ("/docs", lambda: _page(document())),
        ("/llms.txt", lambda: Response(guide(document()), headers=_KEPT, media_type="text/plain")),
        ("/llms-full.txt", lambda: Response(whole(document()), headers=_KEPT, media_type="text/plain")),
    ):
        app.add_api_route(path, _always(cache(answer)), methods=["GET", "HEAD"])


def _page(document: dict[str, Any]) -> Response:
    from gateway.reference.page import page, policy  # Jinja, for whoever looks at it alone

    guarded = {**_KEPT, "content-security-policy": policy(), "referrer-policy": "no-referrer"}
    return Response(page(document), headers=guarded, media_type="text/html")


def _always(answer: Callable[[], Response]) -> Callable[[], Awaitable[Response]]:
    async def show() -> Response:
        written = answer()
        return Response(written.body, headers=dict(written.headers))

    return show
