"""The gateway process: the paid path in front, FastAPI behind it, two ports, and a drain when it is told to go."""

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Iterator

import uvicorn

from gateway import server
from gateway.api.dialect import JSON
from gateway.api.endpoints import PAID
from gateway.api.exchange import Exchange, Receive, Scope, Send
from gateway.api.paths import may_be_looked_at, mended
from gateway.api.serve import serve_call
from gateway.console.door import Door
from gateway.cors import preflight
from gateway.free import free_app
from gateway.hooks import serve_hooks
from gateway.line import LINE
from gateway.ops import ops_app
from gateway.settings import Settings
from gateway.wiring import House, open_house


class PortTaken(Exception):
    """Another program listens there; the message names the port and the setting."""


class Front:
    """Paid calls by exact path, 1 us; everything else through FastAPI."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._free = free_app(house)
        serve_hooks(self._free, house)
        self._console = Door(house)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            endpoint = PAID.get(scope["path"])
            if endpoint is None:
                scope["path"] = mended(scope["path"])
                endpoint = PAID.get(scope["path"])
            if endpoint is not None and scope["method"] == "POST":
                exchange = Exchange(scope, receive, self._house.clock.new_request_id(), endpoint.dialect)
                await serve_call(self._house, endpoint, exchange)
                return
            if self._is_answered_at_the_door(scope):
                return
        if scope["type"] == "http" and self._console.leads(scope["path"]):
            await self._console(scope, receive, send)
            return
        await self._free(scope, receive, send)

    @staticmethod
    def _is_answered_at_the_door(scope: Scope) -> bool:
        """OPTIONS and HEAD need no key: browsers and probes have none to send."""
        line, method = scope[LINE], scope["method"]
        if method == "OPTIONS":
            line.bare(204, preflight(scope["headers"]))
        elif method == "HEAD" and may_be_looked_at(scope["path"]):
            line.bare(200, [JSON])
        else:
            return False
        return True


class _Server(uvicorn.Server):
    """Signals are the process's business: two servers share one drain."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """A client that does not read what was written to it would keep the process until it pleases to close."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises: PortTaken, and what the wiring raises."""
    with (
        _listen(settings.host, settings.port, "FAREGATE_PORT") as public_socket,
        _listen(settings.ops_host, settings.ops_port, "FAREGATE_OPS_PORT") as ops_socket,
    ):
        await _run(settings, public_socket, ops_socket)


async def _run(settings: Settings, public_socket: socket.socket, ops_socket: socket.socket) -> None:
    async with open_house(settings) as house:
        public, ops = _server(Front(house), settings), _server(ops_app(house), settings)
        told = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        serving = [asyncio.create_task(public.serve([public_socket])), asyncio.create_task(ops.serve([ops_socket]))]
        address, ops_address = public_socket.getsockname(), ops_socket.getsockname()
        house.log.info("serving", host=address[0], port=address[1], ops_port=ops_address[1], gateway=settings.gateway_id)
        _quieten_collector()
        leaving = asyncio.create_task(told.wait())
        await asyncio.wait([leaving, *serving], return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        await _leave(house, settings, public, ops, serving)


async def _leave(
    house: House, settings: Settings, public: uvicorn.Server, ops: uvicorn.Server, serving: list[asyncio.Task[None]]
) -> None:
    house.drain.begin()
    house.log.info("draining", open_calls=house.drain.open_calls)
    cut = await house.drain.finished(settings.drain_seconds)
    unsettled = await house.gate.flush(settings.drain_seconds)
    house.log.info("drained", cut=cut, unsettled=unsettled)
    public.should_exit = ops.should_exit = True
    await asyncio.gather(*serving, return_exceptions=True)


def _quieten_collector() -> None:
    """What start-up made lives as long as the process: the collector need not walk it again and again (10% of a call's CPU)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _server(app: object, settings: Settings) -> uvicorn.Server:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # uvicorn's own ASGI types differ in name only
        http=server.protocol(settings.header_limit_bytes, settings.header_seconds, settings.body_seconds),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(settings.keep_alive_seconds),
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


def _listen(host: str, port: int, variable: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortTaken(f"Can't listen on {host}:{port}: {error.strerror}. Set {variable} to a free port.") from error
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def serve(settings: Settings) -> None:
    """The process's main: one event loop (uvloop where there is one)."""
    try:
        import uvloop
    except ImportError:  # no wheel for this system
        asyncio.run(run(settings))
    else:
        uvloop.run(run(settings))
