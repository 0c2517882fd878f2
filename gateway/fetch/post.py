"""One POST to an address that an account has named: nothing is followed, and of the answer only its status counts."""

import asyncio
import ssl
from collections.abc import Mapping

from backends.failures import EngineFault
from gateway.fetch.address import AddressWrong, WebAddress, web_address
from gateway.fetch.dial import Dialler, NotReached, more
from gateway.fetch.policy import Policy
from gateway.fetch.resolve import Resolve

# From the look-up of the name to the answer's head; a receiver that works longer should answer first.
SECONDS = 10.0


class NotDelivered(Exception):
    """The words are for whoever named the address."""


class Poster:
    def __init__(
        self, policy: Policy, *, seconds: float = SECONDS, resolve: Resolve | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._seconds = seconds
        self._dialler = Dialler(policy, resolve=resolve, tls=tls)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """JSON, with these headers. Raises: NotDelivered, unless the answer is a 2xx."""
        try:
            async with asyncio.timeout(self._seconds):
                status = await self._ask(web_address(url), headers, body)
        except (AddressWrong, NotReached) as error:
            raise NotDelivered(str(error)) from None
        except EngineFault:
            raise NotDelivered("its server sent no whole answer") from None
        except TimeoutError:
            raise NotDelivered(f"it did not answer within {self._seconds:g} s") from None
        if not 200 <= status < 300:
            raise NotDelivered(f"its server answered with status {status}")

    async def _ask(self, there: WebAddress, headers: Mapping[str, str], body: bytes) -> int:
        connection = await self._dialler.dial(there)
        try:
            connection.send(_head(there, headers, len(body)), body)
            while not connection.has_head:
                await more(connection)
            return connection.status
        finally:
            connection.cut()


def _head(there: WebAddress, headers: Mapping[str, str], length: int) -> bytes:
    more_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"POST {there.target} HTTP/1.1\r\nhost: {there.authority}\r\nuser-agent: faregate\r\ncontent-type: application/json\r\n"
        f"content-length: {length}\r\naccept-encoding: identity\r\nconnection: close\r\n{more_lines}\r\n"
    ).encode("ascii")
