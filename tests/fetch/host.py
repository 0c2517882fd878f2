"""A web server on loopback that says what a test wants it to say, and notes who asked for what; and a name server's answers."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from gateway.fetch.fetcher import Fetcher
from gateway.fetch.policy import Policy
from gateway.fetch.public import Address
from tests.backends import client

# Self-signed for 127.0.0.1 and localhost, trusted by nothing but tests.
CERTIFICATE = Path(client.__file__).with_name("engine.crt")
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBBI", 13, b"IHDR", 3, 2, 8, 2, 0, 0, 0, 0) + b"pixels" * 20


def answer(body: bytes = PNG, status: int = 200, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} x", "content-type: text/html", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Host:
    """`says` maps a path to bytes in pieces; None among them is silence until the peer leaves. `left` counts those that did."""

    port: int
    says: dict[str, Sequence[bytes | None]] = field(default_factory=lambda: {"/a.png": [answer()], "/silent": [None]})
    asked: list[str] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    left: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, holds: Callable[["Host"], bool]) -> None:
        """Raises: TimeoutError after two seconds."""
        async with asyncio.timeout(2):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    def url(self, path: str = "/a.png", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(writer.get_extra_info("sockname")[0])
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            self._changed.set()
            for piece in self.says[head.split(" ")[1]]:
                if piece is None:
                    await reader.read()
                    break
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left += 1
            self._changed.set()
            writer.close()


@asynccontextmanager
async def host(bind: str = "127.0.0.1", *, tls: bool = False) -> AsyncIterator[Host]:
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    found = Host(0)
    server = await asyncio.start_server(found.serve, bind, 0, ssl=context)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        await found.until(lambda web: web.left == len(web.reached))


def names(**known: str) -> Callable[[str, int], "asyncio.Future[Sequence[Address]]"]:
    """A name server: `names(evil="8.8.8.8 127.0.0.1")`; it answers the next list each time, where there are several (`|`)."""
    left = {name: said.split("|") for name, said in known.items()}

    def resolve(name: str, port: int) -> "asyncio.Future[Sequence[Address]]":
        lists = left.get(name.replace("-", "_").removesuffix(".example"), [""])
        said = lists.pop(0) if len(lists) > 1 else lists[0]
        answered: asyncio.Future[Sequence[Address]] = asyncio.get_running_loop().create_future()
        answered.set_result(tuple(ip_address(one) for one in said.split()))
        return answered

    return resolve


def fetcher(*allowed: str, seconds: float = 5.0, tls: ssl.SSLContext | None = None, **known: str) -> Fetcher:
    return Fetcher(
        Policy.of(allowed),
        bytes_max=100_000,
        seconds=seconds,
        resolve=names(**known),
        tls=tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )


def trusting() -> ssl.SSLContext:
    """A client's side that knows the test's own certificate."""
    return ssl.create_default_context(cafile=CERTIFICATE)
