"""The only file that opens connections to engines: `with client.open(...) as answer`, whose end returns or closes the socket."""

import asyncio
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from backends.connection import Connection, Patience
from backends.failures import Aborted, EngineBroke, EngineFault, EngineSpokeNonsense, EngineTimedOut, EngineUnreachable
from backends.fleet import Replica

__all__ = [
    "Aborted", "Answer", "EngineBroke", "EngineClient", "EngineFault", "EngineSpokeNonsense", "EngineTimedOut",
    "EngineUnreachable", "Patience",
]  # fmt: skip

# Idle connections kept to one replica; a burst beyond it closes them as they finish.
MAX_IDLE_PER_REPLICA = 512
# Different request heads that are remembered for a replica; callers that vary theirs pay for each.
MAX_HEADS_KNOWN = 64
# Set by the client itself: an answer's framing and its connection are not the caller's to choose.
_OWN_HEADERS = frozenset((b"host", b"content-length", b"transfer-encoding", b"connection", b"expect", b"upgrade"))


class EngineClient:
    """Connections to all replicas, kept open between calls. Belongs to one event loop."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        shortest = min(self._patience.first_byte, self._patience.between_bytes, self._patience.idle)
        self._tick_seconds = min(1.0, shortest / 4)
        self._pools: dict[str, _Pool] = {}
        self._open: set[Connection] = set()
        self._none_open: asyncio.Event | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    def open(
        self, replica: Replica, path: str, body: bytes, headers: Sequence[tuple[bytes, bytes]], *, method: str = "POST"
    ) -> "Answer":
        """An answer to be started; nothing is sent yet. Only `headers`, the host, the length and the replica's own key go out."""
        pool = self._pool(replica)
        return Answer(self, pool, pool.request(method, path, headers, len(body)), body)

    def forget(self, replica_id: str) -> None:
        """It is gone: nothing is kept open to it any more. What runs there goes on."""
        pool = self._pools.pop(replica_id, None)
        for connection in tuple(pool.idle) if pool is not None else ():
            connection.cut()

    def abandon(self, replica_id: str) -> None:
        """It has stopped answering: calls that have had no byte of an answer are free to go elsewhere."""
        pool = self._pools.get(replica_id)
        for connection in tuple(pool.open) if pool is not None else ():
            if connection.is_unanswered:
                connection.cut(EngineUnreachable(f"{connection.where} has stopped answering"))

    @property
    def open_connections(self) -> int:
        """Sockets open or being opened, idle ones included."""
        return len(self._open)

    async def close(self) -> None:
        """Cuts every connection, running ones too, and returns when their sockets are closed."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._open:
            self._none_open = asyncio.Event()
            for connection in tuple(self._open):
                connection.cut(Aborted())
            await self._none_open.wait()

    def _pool(self, replica: Replica) -> "_Pool":
        pool = self._pools.get(replica.id)
        if pool is None or pool.replica is not replica:
            if pool is not None and pool.replica != replica:  # the fleet file was read again and it moved
                for connection in tuple(pool.idle):
                    connection.cut()
                pool = None
            if pool is None:
                pool = self._pools[replica.id] = _Pool(replica)
        return pool

    async def dial(self, pool: "_Pool") -> Connection:
        """A new connection, counted until it is closed. Raises EngineUnreachable, and Aborted when the client closes."""
        loop = asyncio.get_running_loop()
        replica = pool.replica

        def lost(connection: Connection) -> None:
            pool.idle.pop(connection, None)
            pool.open.discard(connection)
            self._forget(connection)

        connection = Connection(loop, replica.origin, self._patience, lost)
        self._open.add(connection)
        pool.open.add(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._tick_seconds, self._sweep)
        connected = False
        try:
            async with asyncio.timeout(self._patience.connect):
                await loop.create_connection(lambda: connection, replica.host, replica.port, ssl=pool.tls())
            connected = not connection.is_cut
        except TimeoutError as error:
            raise EngineUnreachable(f"{replica.origin} took no connection within {self._patience.connect:g} s") from error
        except OSError as error:
            raise EngineUnreachable(f"{replica.origin} took no connection: {error}") from error
        finally:
            if not connected:
                connection.cut()
                pool.open.discard(connection)
                self._forget(connection)
        if not connected:
            raise Aborted
        return connection

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if self._none_open is not None and not self._open:
            self._none_open.set()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in tuple(self._open):
            connection.check(now)
        self._sweeper = loop.call_later(self._tick_seconds, self._sweep) if self._open else None


class Answer:
    """One call's answer. Leaving the `with` returns a spent connection to its pool and closes any other at once."""

    __slots__ = ("_body", "_client", "_connection", "_dialling", "_failure", "_head", "_pool", "headers", "status")

    def __init__(self, client: EngineClient, pool: "_Pool", head: bytes, body: bytes) -> None:
        self._client, self._pool, self._head, self._body = client, pool, head, body
        self._connection: Connection | None = None
        self._dialling: asyncio.Task[Connection] | None = None
        self._failure: Aborted | None = None
        self.status = 0
        self.headers: dict[bytes, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            self.abort()
        elif connection.may_rest and self._failure is None and len(self._pool.idle) < MAX_IDLE_PER_REPLICA:
            connection.rest()
            self._pool.idle[connection] = None
        else:
            connection.cut(Aborted())

    async def start(self) -> None:
        """Connects, sends, and returns with `status` and `headers`.

        Raises EngineUnreachable (another replica may be tried), EngineTimedOut, EngineBroke, EngineSpokeNonsense, Aborted.
        """
        connection = self._pool.take()
        if connection is not None:
            try:
                await self._exchange(connection)
            except EngineUnreachable:
                pass  # it closed the idle connection just as we wrote to it: nobody has seen this request
            else:
                return
        await self._exchange(await self._dial())

    async def read(self) -> bytes:
        """Everything that arrived since the last read; b"" at the clean end.

        An answer without a length ends cleanly when the engine closes: whether it is whole, only its content can tell.
        Raises EngineBroke, EngineTimedOut, EngineSpokeNonsense (after all bytes before it were read) or Aborted (at once).
        """
        connection = self._connection
        assert connection is not None, "read() belongs between start() and the end of the with block"
        while True:
            self._raise_if_aborted()
            if connection.has_bytes:
                return connection.take()
            if connection.failure is not None:
                raise connection.failure
            if connection.is_complete:
                return b""
            await connection.wait()

    def abort(self, reason: BaseException | None = None) -> None:
        """Closes the socket now, from any task or callback; `start` and `read` raise Aborted."""
        if self._failure is None:
            self._failure = Aborted(reason)
        if self._dialling is not None:
            self._dialling.cancel()
        if self._connection is not None:
            self._connection.cut(self._failure)

    async def _exchange(self, connection: Connection) -> None:
        self._connection = connection
        connection.send(self._head, self._body)
        while not connection.has_head:
            if connection.failure is not None:
                raise connection.failure
            await connection.wait()
        self._raise_if_aborted()
        self.status, self.headers = connection.status, connection.headers

    async def _dial(self) -> Connection:
        # In a task of its own, so that `abort` can end it without cancelling whoever waits for it.
        self._connection = None
        self._raise_if_aborted()
        self._dialling = dialling = asyncio.get_running_loop().create_task(self._client.dial(self._pool))
        dialling.add_done_callback(self._dialled)
        await asyncio.wait((dialling,))
        self._raise_if_aborted()
        return dialling.result()

    def _dialled(self, dialling: asyncio.Task[Connection]) -> None:
        self._dialling = None
        if dialling.cancelled() or dialling.exception() is not None:
            return
        if self._failure is None:
            self._connection = dialling.result()
        else:
            dialling.result().cut()

    def _raise_if_aborted(self) -> None:
        if self._failure is not None:
            raise self._failure


class _Pool:
    """The connections to one replica, the idle ones by their last use, and the part of a request head that never changes."""

    __slots__ = ("_heads", "_tls", "head", "idle", "open", "replica")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.idle: dict[Connection, None] = {}
        self.open: set[Connection] = set()
        self._tls: ssl.SSLContext | None = None
        self._heads: dict[tuple[object, ...], bytes] = {}
        key = f"authorization: Bearer {replica.api_key}\r\n" if replica.api_key else ""
        self.head = f" HTTP/1.1\r\nhost: {replica.authority}\r\n{key}".encode("ascii")

    def take(self) -> Connection | None:
        while self.idle:
            connection, _ = self.idle.popitem()
            if connection.is_rested:
                return connection
            connection.cut()
        return None

    def request(self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], length: int) -> bytes:
        """The head of a request. What callers send is nearly always the same, so it is checked and put together once."""
        headers = tuple(headers)
        begin = self._heads.get((method, path, headers))
        if begin is None:
            begin = _request_begin(self, method, path, headers)
            if len(self._heads) < MAX_HEADS_KNOWN:
                self._heads[method, path, headers] = begin
        if length or method == "POST":
            return b"%bcontent-length: %d\r\n\r\n" % (begin, length)
        return begin + b"\r\n"

    def tls(self) -> ssl.SSLContext | None:
        if self.replica.is_tls and self._tls is None:
            self._tls = ssl.create_default_context(cafile=self.replica.ca_file)
        return self._tls


def _request_begin(pool: _Pool, method: str, path: str, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    target = f"{method} {pool.replica.base_path}{path}".encode("ascii")
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers) or b"\r" in target or b"\n" in target:
        raise ValueError("a header or path sent to an engine may not contain a line break")
    for name, _ in headers:
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"the header {name.decode('latin-1')} is set by the client itself")
    return target + pool.head + lines
