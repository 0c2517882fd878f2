"""The paid path's connection to Valkey or Redis: every command of one loop tick leaves in one write."""

import asyncio
import contextlib
import hashlib
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import hiredis

from gateway.valkey_address import Address

Argument = bytes | str | int
_pack: Callable[[tuple[Argument, ...]], bytes] = cast("Any", hiredis.pack_command)  # its stub knows 1-tuples only
_MORE: Any = object()  # what the reader answers when a reply is not complete yet

# Longest wait between two attempts to connect. It must stay well below an epoch's opening second
# (limits/open.lua), in which every gateway has to be back to put its open holds back.
BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.5)
CONNECT_SECONDS = 0.5  # one attempt, with its handshake
# A connection that lived this long was healthy: the next loss is a first one, not a repeated one.
HEALTHY_SECONDS = 1.0
# What nobody waits for may wait so long for company: a write of its own costs more than the command.
LAZY_SECONDS = 0.001
# A stalled event loop sees the clock before it sees the replies that wait in the socket: look again after this.
SECOND_LOOK_SECONDS = 0.005
# Refusals that say "not this server, not now"; the command did not run, another connection may help.
_WRONG_SERVER = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MOVED", "UNBLOCKED")


class ValkeyUnavailable(Exception):
    """No answer can be had; `maybe_sent` says whether the command may have run all the same."""

    def __init__(self, message: str, *, maybe_sent: bool) -> None:
        super().__init__(message)
        self.maybe_sent = maybe_sent


class ValkeyRefused(Exception):
    """The server answered with an error; the message is the server's own."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the SHA-1 by which a server knows it."""

    text: str
    sha: str

    @classmethod
    def of(cls, text: str) -> "Script":
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


@dataclass(slots=True, eq=False)
class _Sent:
    answer: asyncio.Future[Any] | None  # None: nobody waits for this reply
    at: float
    script: Script | None
    packed: bytes


class Valkey:
    """One connection that comes back by itself; while it is away, calls fail at once.

    The wait before the next attempt is the breaker: it grows with losses in a row, and the handshake
    (which needs real answers) is the probe that closes it.
    """

    def __init__(self, url: str, timeout_ms: int = 100) -> None:
        self._address = Address.parse(url)
        self._timeout = timeout_ms / 1000
        self._scripts: dict[str, Script] = {}
        self._link: _Link | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._first_try = asyncio.Event()
        self.listeners: list[Callable[[], None]] = []  # called on each new connection, before any other command
        self.run_id = ""
        self.calls = 0
        self.connects = 0
        self.losses = 0
        self.timeouts = 0

    @property
    def connected(self) -> bool:
        return self._link is not None

    async def start(self) -> None:
        """Begin to connect and wait for the first attempt's outcome; a server that is away is no error."""
        self._keeper = asyncio.create_task(self._keep_connected(), name="valkey")
        await self._first_try.wait()

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
        if self._link is not None:
            self._link.lose("closed")
            self._link = None

    def call(self, *args: Argument) -> asyncio.Future[Any]:
        """Send one command; the future gives the reply or raises ValkeyRefused or ValkeyUnavailable."""
        if self._link is None:
            return _unavailable()
        self.calls += 1
        return self._link.send(_pack(args))

    def script(self, script: Script, keys: Sequence[str], args: Sequence[Argument], *, lazy: bool = False) -> asyncio.Future[Any]:
        """Run a script by its SHA; a server that does not know it is taught, and asked again.

        `lazy`: nobody waits for it, so it may wait up to 1 ms for others to leave with; the order stays.
        """
        link = self._link
        if link is None:
            return _unavailable()
        self.calls += 1
        if script.sha not in self._scripts:
            self._scripts[script.sha] = script
        return link.run(script, _pack(("EVALSHA", script.sha, len(keys), *keys, *args)), lazy=lazy)

    async def _keep_connected(self) -> None:
        loop = asyncio.get_running_loop()
        losses_in_a_row = 0
        while True:
            with contextlib.suppress(OSError, ValkeyUnavailable, ValkeyRefused, TimeoutError):
                link = await self._connect()
                connected_at = loop.time()
                self._first_try.set()
                await link.lost.wait()
                self._link = None
                self.losses += 1
                self.timeouts += link.timed_out
                if loop.time() - connected_at >= HEALTHY_SECONDS:
                    losses_in_a_row = 0
            self._first_try.set()
            wait = BACKOFF_SECONDS[min(losses_in_a_row, len(BACKOFF_SECONDS) - 1)]
            losses_in_a_row += 1
            await asyncio.sleep(wait * random.uniform(0.8, 1.0))  # noqa: S311 - jitter, not a secret

    async def _connect(self) -> "_Link":
        async with asyncio.timeout(max(CONNECT_SECONDS, self._timeout * 2)):
            link = await self._address.dial(lambda: _Link(self._timeout))
            try:
                await self._shake_hands(link)
            except BaseException:
                link.lose("handshake failed")
                raise
        self.connects += 1
        self._link = link
        link.on_lost = self._forget
        for listener in self.listeners:
            listener()
        return link

    def _forget(self, link: "_Link") -> None:
        if self._link is link:
            self._link = None

    async def _shake_hands(self, link: "_Link") -> None:
        for command in self._address.greeting():
            await link.send(_pack(command))
        info = await link.send(_pack(("INFO", "server")))
        self.run_id = _run_id(info)
        for script in self._scripts.values():
            link.teach(script)


class _Link(asyncio.Protocol):
    """One socket: commands out in order, replies matched in order, given up as a whole."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._reader = hiredis.Reader(replyError=ValkeyRefused, notEnoughData=_MORE)
        self._transport: asyncio.Transport | None = None
        self._pending: deque[_Sent] = deque()
        self._outgoing: list[bytes] = []
        self._taught: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._suspect: _Sent | None = None
        self._leaves = False
        self._lazily: asyncio.TimerHandle | None = None
        self.timed_out = False
        self.lost = asyncio.Event()
        self.on_lost: Callable[[_Link], None] | None = None

    def send(self, packed: bytes, script: Script | None = None, *, lazy: bool = False) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._put(_Sent(answer, self._loop.time(), script, packed), lazy=lazy)
        return answer

    def run(self, script: Script, packed: bytes, *, lazy: bool = False) -> asyncio.Future[Any]:
        if script.sha not in self._taught:
            self.teach(script)
        return self.send(packed, script, lazy=lazy)

    def teach(self, script: Script) -> None:
        self._taught.add(script.sha)
        self._put(_Sent(None, self._loop.time(), None, _pack(("SCRIPT", "LOAD", script.text))))

    def _put(self, sent: _Sent, *, lazy: bool = False) -> None:
        if lazy:
            if self._lazily is None:
                self._lazily = self._loop.call_later(LAZY_SECONDS, self._flush_lazily)
        elif not self._leaves:
            self._leaves = True
            self._loop.call_soon(self._flush)
        self._outgoing.append(sent.packed)
        self._pending.append(sent)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._watch)

    def _flush_lazily(self) -> None:
        self._lazily = None
        self._flush()

    def _flush(self) -> None:
        self._leaves = False
        outgoing, self._outgoing = self._outgoing, []
        if self._transport is not None and outgoing:
            self._transport.write(outgoing[0] if len(outgoing) == 1 else b"".join(outgoing))

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while self._pending:
                reply = self._reader.gets()
                if reply is _MORE:
                    return
                self._answer(self._pending.popleft(), reply)
        except hiredis.ProtocolError as error:
            self.lose(f"the server broke the protocol: {error}")

    def _answer(self, sent: _Sent, reply: Any) -> None:
        answer = sent.answer
        if answer is None or answer.done():
            return
        if not isinstance(reply, ValkeyRefused):
            answer.set_result(reply)
            return
        code = str(reply).partition(" ")[0]
        if code == "NOSCRIPT" and sent.script is not None:
            self.teach(sent.script)
            self._put(_Sent(answer, self._loop.time(), None, sent.packed))
        elif code in _WRONG_SERVER:
            answer.set_exception(ValkeyUnavailable(str(reply), maybe_sent=False))
            self.lose(str(reply))
        else:
            answer.set_exception(reply)

    def _watch(self) -> None:
        """One coarse timer for all: the oldest unanswered command decides."""
        self._timer = None
        if not self._pending:
            return
        oldest = self._pending[0]
        left = oldest.at + self._timeout - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._watch)
        elif self._suspect is not oldest:
            self._suspect = oldest
            self._timer = self._loop.call_later(SECOND_LOOK_SECONDS, self._watch)
        else:
            self.timed_out = True
            self.lose(f"no answer within {self._timeout * 1000:.0f} ms")

    def lose(self, reason: str) -> None:
        """Give the connection up: everything pending fails, and may have run all the same."""
        if self.lost.is_set():
            return
        self.lost.set()
        if self._timer is not None:
            self._timer.cancel()
        if self.on_lost is not None:
            self.on_lost(self)
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, deque()
        for sent in pending:
            if sent.answer is not None and not sent.answer.done():
                sent.answer.set_exception(ValkeyUnavailable(reason, maybe_sent=True))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its bases

    def connection_lost(self, exc: Exception | None) -> None:
        self.lose(f"connection lost: {exc or 'closed by the server'}")


def _run_id(info: bytes) -> str:
    for line in info.decode().splitlines():
        if line.startswith("run_id:"):
            return line[7:]
    raise ValkeyUnavailable("INFO names no run_id; is this Valkey or Redis?", maybe_sent=False)


def _unavailable() -> asyncio.Future[Any]:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    answer.set_exception(ValkeyUnavailable("not connected to Valkey", maybe_sent=False))
    return answer
