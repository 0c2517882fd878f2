"""uvicorn's HTTP/1.1 protocol with the limits it lacks: header size, slow headers, pipelining, prompt word of a hang-up."""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from gateway.cors import EVERY_ORIGIN
from gateway.errors import envelope
from gateway.line import LINE, Line

LINGER_SECONDS = 1.0
UNREAD_SECONDS = 30.0
# The worst honest framing: a head and an end for each chunk of one byte, 6 bytes, beside the byte itself.
FRAMING_BYTES_MAX = 8
# Headers that we act on ourselves.
_NOTED = frozenset((b"transfer-encoding", b"expect", b"origin"))
# What asks for another protocol on this connection.
_HOP_BY_HOP = frozenset((b"connection", b"upgrade", b"http2-settings"))


class _Refused(Exception):
    """Raised inside a parser callback: what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Pipelined(Exception):
    """A second request came before the first was answered. It is not read: the answer closes the connection (RFC 9112, 9.3.2)."""


class _Door:
    """The transport, whose `close` lingers: a socket closed with unread data is reset, and the reset can destroy our last answer
    on its way (RFC 9112, 9.6)."""

    __slots__ = ("_transport", "close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class FrontProtocol(HttpToolsProtocol):
    """One client connection. Stock uvicorn took a 5 MB header, never cut slow headers, and stopped reading while a pipelined
    request waited, which hid the first one's hang-up."""

    header_limit_bytes = 64 * 1024
    header_seconds = 10.0
    body_seconds = 60.0

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_bytes = self._framing_bytes = self._body_bytes = 0
        self._in_headers = True
        self._deaf = False
        self._is_cross_origin = False
        self._stays: bytes | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._body_is_awaited = False
        self._body_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._socket = transport
        self.transport = _Door(transport, self._close)  # type: ignore[assignment]  # all that uvicorn uses of it
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_arrived()
        self._body_arrived()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        super().connection_lost(exc)
        if isinstance(self.cycle, Line) and self.cycle.disconnected:
            self.cycle.hang_up()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        if self._in_headers:
            self._header_bytes += len(data)
        else:
            self._framing_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._not_understood(error)
        else:
            # One read mostly brings a whole request. Only headers that are still not complete count in full, and have a time.
            if self._in_headers and self._header_bytes:
                self._watch_headers()
            elif self._body_is_awaited:
                self._watch_body()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            head, self._stays = self._stays or b"", None
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self.parser.feed_data(head + data[upgrade.args[0] :])

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            raise _Pipelined
        super().on_message_begin()
        self._in_headers, self._is_cross_origin = True, False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers:  # as uvicorn's own, without a second call for each header
            self.headers.append((name.lower(), value))
            return
        # A trailer: it may overrule no header (RFC 9110, 6.5.1), and nothing here wants one.
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > self.header_limit_bytes:
            raise self._headers_too_large()

    def on_headers_complete(self) -> None:
        """As uvicorn's own, with our cycle, which is the client's line."""
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value) + 4
            if name in _NOTED:
                self._note(name, value)
        if size > self.header_limit_bytes:
            raise self._headers_too_large()
        if self.parser.should_upgrade():
            self._stay()
            return
        if not self.url.startswith(b"/") and self.url != b"*":
            raise _Refused(400, "The request's target must be a path.")
        # From here on trailers are counted, whole ones by their own bytes, a growing one by what is no body.
        self._header_bytes = self._framing_bytes = self._body_bytes = 0
        self._headers_arrived()
        scope, version, url = self.scope, self.parser.get_http_version(), httptools.parse_url(self.url)
        scope["http_version"] = version
        scope["method"] = self.parser.get_method().decode("ascii")
        # As it came: an encoded path is none of ours, but for a model's name (api/paths).
        scope["path"], scope["raw_path"] = url.path.decode("ascii"), url.path
        scope["query_string"] = url.query or b""
        always = self.server_state.default_headers
        self.cycle = scope[LINE] = Line(  # type: ignore[literal-required]  # an extension of ours
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[*always, *EVERY_ORIGIN] if self._is_cross_origin else always,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        self._start_asgi_task(self.cycle, self.app)
        self._body_is_awaited = True

    def _note(self, name: bytes, value: bytes) -> None:
        if name == b"origin":
            self._is_cross_origin = True
        elif name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        elif value.strip().lower() != b"chunked":
            raise _Refused(400, "The only transfer coding taken is chunked.")

    def _stay(self) -> None:
        """Java's client asks on each new connection for HTTP/2 (h2c); no is said by answering in HTTP/1.1 (RFC 9110, 7.8).
        The parser takes what follows for another protocol: it gets the same head once more, without the question."""
        wanted = dict(self.headers).get(b"upgrade", b"")
        if self.parser.get_method() == b"CONNECT" or not wanted.lower().startswith(b"h2c"):
            raise _Refused(400, "This server speaks HTTP/1.1 only; do not ask for an upgrade.")
        kept = [b"%b: %b\r\n" % header for header in self.headers if header[0] not in _HOP_BY_HOP]
        version = self.parser.get_http_version().encode()
        self._stays = b"%b %b HTTP/%b\r\n%b\r\n" % (self.parser.get_method(), self.url, version, b"".join(kept))

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def _watch_body(self) -> None:
        """What comes beside a body is chunk heads and trailers: a few bytes a chunk, and a trailer has a header's limit."""
        if self._body_timer is None:
            self._body_timer = self.loop.call_later(self.body_seconds, self._body_too_slow)
        if self._framing_bytes > self.header_limit_bytes + FRAMING_BYTES_MAX * self._body_bytes:
            self._refuse_headers()

    def on_message_complete(self) -> None:
        if self._stays is not None:
            return  # the body is still to come
        super().on_message_complete()
        self._body_arrived()
        # A body of over 64 KB paused the reading; from here on only a hang-up or a pipelined request can come.
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._in_headers, self._header_bytes = True, 0

    def _close(self) -> None:
        """Close; when the client is still sending, say so (FIN) and read on for a moment."""
        if self._linger_timer is not None or self._socket.is_closing():
            return
        is_sending = self._deaf or (self.cycle is not None and self.cycle.more_body)
        if not is_sending or not self._socket.can_write_eof():
            self._socket.close()
            # A client that does not read keeps what we wrote for it in memory, but not for ever.
            self._linger_timer = self.loop.call_later(UNREAD_SECONDS, self._socket.abort)
            return
        self._deaf = True
        self.flow.resume_reading()
        self._socket.write_eof()
        self._linger_timer = self.loop.call_later(LINGER_SECONDS, self._socket.close)

    def _watch_headers(self) -> None:
        if self._header_bytes > self.header_limit_bytes:
            self._refuse_headers()
        elif self._header_timer is None:
            self._expect_headers()

    def _expect_headers(self) -> None:
        self._header_timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def _headers_arrived(self) -> None:
        self._in_headers = False
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _body_arrived(self) -> None:
        self._body_is_awaited = False
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_too_slow(self) -> None:
        self._refuse(408, f"The request's body did not arrive within {self.body_seconds:g} seconds.")

    def _too_slow(self) -> None:
        self._refuse(408, f"The request's headers did not arrive within {self.header_seconds:g} seconds.")

    def _not_understood(self, error: httptools.HttpParserError) -> None:
        cause = error.__context__
        if isinstance(cause, _Pipelined):
            self._deaf = True
            self.cycle.keep_alive = False
        elif isinstance(cause, _Refused):
            self._refuse(cause.status, cause.message)
        else:
            self.send_400_response("This is not a valid HTTP/1.1 request.")

    def _headers_too_large(self) -> _Refused:
        return _Refused(
            431, f"The request's headers are over the limit of {self.header_limit_bytes} bytes; send less in headers."
        )

    def _refuse_headers(self) -> None:
        refused = self._headers_too_large()
        self._refuse(refused.status, refused.message)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, message: str) -> None:
        """Answer without a request: the connection can't be used further. Nothing was held yet."""
        self._deaf = True
        self._headers_arrived()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = envelope(message, "invalid_request_error", None, "bad_http")
            more = [b"%b: %b\r\n" % header for header in (EVERY_ORIGIN if self._is_cross_origin else ())]
            self.transport.write(
                b"%bcontent-type: application/json\r\n%bcontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (STATUS_LINE[status], b"".join(more), len(body), body)
            )
        self.transport.close()


def protocol(header_limit_bytes: int, header_seconds: float, body_seconds: float) -> type[FrontProtocol]:
    """The protocol class with its limits set; uvicorn takes a class and makes the instances itself."""
    limits = {"header_limit_bytes": header_limit_bytes, "header_seconds": header_seconds, "body_seconds": body_seconds}
    return type("Front", (FrontProtocol,), limits)
