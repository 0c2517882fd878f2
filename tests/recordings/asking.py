"""Sends one call to an engine over a connection of its own, and keeps every byte of the answer and how it arrived."""

import http.client
from urllib.parse import urlsplit

from tests.recordings.recording import Answer, Call

HEADERS = {"content-type": "application/json", "accept": "*/*"}
# What a proxy or the clock adds, and differs from one recording to the next without meaning anything.
LEFT_OUT = frozenset({"date", "keep-alive", "connection", "content-length", "transfer-encoding"})


def ask(url: str, call: Call, *, token: str | None = None, timeout_seconds: float = 120.0) -> Answer:
    """`url` is the engine's, without a path; `token` a gateway's key. An answer that is cut off has the bytes until then."""
    headers = {**HEADERS, "anthropic-version": "2023-06-01"} if "/messages" in call.path else dict(HEADERS)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout_seconds)
    try:
        connection.request(call.method, call.path, call.encoded(), headers)
        response = connection.getresponse()
        pieces = _pieces(response)
        kept = {name.lower(): value for name, value in response.getheaders() if name.lower() not in LEFT_OUT}
        return Answer(response.status, kept, b"".join(pieces), [len(piece) for piece in pieces])
    finally:
        connection.close()


def _pieces(response: http.client.HTTPResponse) -> list[bytes]:
    pieces: list[bytes] = []
    try:
        while piece := response.read1(65536):
            pieces.append(piece)
    except (http.client.IncompleteRead, ConnectionResetError):
        return pieces
    return pieces
