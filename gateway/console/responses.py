"""Answers become HTTP: what browsers may do with a page, cookies, compression, files that stay."""

import gzip
from collections.abc import Mapping
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import Response

from billing.spreadsheet import csv_lines
from gateway.console.answers import Cookie, Download, Moved, Told
from gateway.console.static_files import static_file
from gateway.settings import Settings

PACKED_FROM_BYTES = 1_000
# Nothing from elsewhere, and nothing in the page itself that runs or styles.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
GUARDS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin", "cache-control": "no-store", "vary": "cookie, accept-encoding",
}  # fmt: skip
STAYS = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff", "vary": "accept-encoding"}
STRICTLY_TLS = {"strict-transport-security": "max-age=31536000"}


def is_tls(settings: Settings) -> bool:
    """Whether browsers come by https, through whatever ends it before us."""
    return (settings.public_url or "").startswith("https://")


def cookie_name(settings: Settings, name: str) -> str:
    """`__Host-` pins a cookie to this host and to https; browsers refuse it without."""
    return f"__Host-{name}" if is_tls(settings) else name


def html(request: Request, settings: Settings, body: bytes, status: int = 200) -> Response:
    return _packed(request, body, status, _guards(settings), "text/html; charset=utf-8")


def moved(settings: Settings, answer: Moved) -> Response:
    response = Response(status_code=303, headers={**_guards(settings), "location": quote(answer.to, safe="/?=&%")})
    for cookie in answer.cookies:
        _set(response, settings, cookie)
    return response


def download(request: Request, settings: Settings, answer: Download) -> Response:
    body = "".join(csv_lines(answer.columns, answer.rows)).encode()
    headers = {**_guards(settings), "content-disposition": f'attachment; filename="{answer.name}"'}
    return _packed(request, body, 200, headers, "text/csv; charset=utf-8")


def told(settings: Settings, answer: Told) -> Response:
    return Response(orjson.dumps(dict(answer.facts)), answer.status, _guards(settings), "application/json")


def static(request: Request) -> Response:
    found = static_file(request.scope["path"])
    if found is None:
        return Response("There is no such file.", 404, {"cache-control": "no-store"}, "text/plain")
    if _takes_gzip(request):
        return Response(found.packed, 200, {**STAYS, "content-encoding": "gzip"}, found.media_type)
    return Response(found.body, 200, STAYS, found.media_type)


def _packed(request: Request, body: bytes, status: int, headers: Mapping[str, str], media_type: str) -> Response:
    if len(body) >= PACKED_FROM_BYTES and _takes_gzip(request):
        return Response(gzip.compress(body, 5, mtime=0), status, {**headers, "content-encoding": "gzip"}, media_type)
    return Response(body, status, dict(headers), media_type)


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _guards(settings: Settings) -> dict[str, str]:
    return {**GUARDS, **STRICTLY_TLS} if is_tls(settings) else dict(GUARDS)


def _set(response: Response, settings: Settings, cookie: Cookie) -> None:
    response.set_cookie(
        cookie_name(settings, cookie.name), cookie.value, max_age=cookie.seconds, path="/", secure=is_tls(settings),
        httponly=True, samesite="lax",
    )  # fmt: skip
