"""One image by its address: dialled where that is allowed, and read within bounds of size and time."""

import asyncio
import ssl
from weakref import WeakValueDictionary

from backends.connection import Connection
from backends.failures import EngineFault
from gateway.fetch.address import AddressWrong, WebAddress, web_address
from gateway.fetch.dial import Dialler, NotReached, more
from gateway.fetch.picture import MAGIC_BYTES, NotAnImage, Picture, media_type, picture
from gateway.fetch.policy import Policy
from gateway.fetch.resolve import Resolve

REDIRECTS_MAX = 3
# Images that one account has fetched at once: more would make us a tool to load somebody's server with.
AT_ONCE_PER_ACCOUNT = 4
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class ImageNotFetched(Exception):
    """The words are for the client: what is wrong with the address, or what came from it."""


class Fetcher:
    """Fetches images for accounts. No proxy, cookie, key or referrer of ours goes along, and no compressed body comes back."""

    def __init__(
        self,
        policy: Policy,
        *,
        bytes_max: int,
        seconds: float,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._bytes_max, self._seconds = bytes_max, seconds
        self._dialler = Dialler(policy, resolve=resolve, tls=tls)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def get(self, url: str, account: str) -> Picture:
        """Raises: ImageNotFetched."""
        turns = self._turns.setdefault(account, asyncio.Semaphore(AT_ONCE_PER_ACCOUNT))
        async with turns:
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._follow(web_address(url))
            except (AddressWrong, NotAnImage, NotReached) as error:
                raise ImageNotFetched(str(error)) from None
            except TimeoutError:
                raise ImageNotFetched(f"it was not there within {self._seconds:g} s") from None

    async def _follow(self, there: WebAddress) -> Picture:
        for _ in range(REDIRECTS_MAX + 1):
            found = await self._ask(there)
            if isinstance(found, Picture):
                return found
            there = there.leads_to(found)
        raise ImageNotFetched(f"it is redirected more than {REDIRECTS_MAX} times")

    async def _ask(self, there: WebAddress) -> Picture | str:
        """The image, or where else it is."""
        connection = await self._dialler.dial(there)
        try:
            return await self._exchange(connection, there)
        finally:
            connection.cut()

    async def _exchange(self, connection: Connection, there: WebAddress) -> Picture | str:
        connection.send(_request(there), b"")
        try:
            while not connection.has_head:
                await more(connection)
            if connection.status in _REDIRECTS:
                return connection.headers.get(b"location", b"").decode("utf-8", "replace")
            self._check_head(connection)
            return picture(await self._body(connection))
        except EngineFault:
            raise ImageNotFetched("its server sent no whole answer") from None

    def _check_head(self, connection: Connection) -> None:
        if connection.status != 200:
            raise ImageNotFetched(f"its server answered with status {connection.status}")
        coding = connection.headers.get(b"content-encoding", b"identity")
        if coding.lower() != b"identity":
            raise ImageNotFetched("its server sent it compressed, which was not asked for")
        if int(connection.headers.get(b"content-length", b"0")) > self._bytes_max:
            raise self._too_large()

    async def _body(self, connection: Connection) -> bytes:
        """Read no further than to where it is clear that it is no image, or too large a one."""
        data = bytearray()
        is_known = False
        while not (connection.is_complete and not connection.has_bytes):
            if connection.has_bytes:
                data += connection.take()
            else:
                await more(connection)
            if not is_known and len(data) >= MAGIC_BYTES:
                media_type(bytes(data[:MAGIC_BYTES]))
                is_known = True
            if len(data) > self._bytes_max:
                raise self._too_large()
        return bytes(data)

    def _too_large(self) -> ImageNotFetched:
        return ImageNotFetched(f"it is larger than {self._bytes_max} bytes")


def _request(there: WebAddress) -> bytes:
    return (
        f"GET {there.target} HTTP/1.1\r\nhost: {there.authority}\r\nuser-agent: faregate\r\n"
        "accept: image/png, image/jpeg, image/webp, image/gif\r\naccept-encoding: identity\r\nconnection: close\r\n\r\n"
    ).encode("ascii")
