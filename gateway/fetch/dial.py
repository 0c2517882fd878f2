"""A connection to an address that somebody else has named: looked up once, checked, and dialled as checked."""

import asyncio
import ssl
from collections.abc import Sequence

from backends.connection import Connection, Patience
from gateway.fetch.address import WebAddress
from gateway.fetch.policy import Policy
from gateway.fetch.public import Address
from gateway.fetch.resolve import Resolve, Resolver

CONNECT_SECONDS = 3.0
# A host that has more of them has to be reachable by one of the first.
ADDRESSES_TRIED = 4
_PATIENCE = Patience(connect=CONNECT_SECONDS, max_head_bytes=32 * 1024)


class NotReached(Exception):
    """The words are for whoever named the address."""


class Dialler:
    """Goes where the policy allows, with no proxy, cookie, key or referrer of ours."""

    def __init__(self, policy: Policy, *, resolve: Resolve | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._policy = policy
        self._resolve = resolve or Resolver()
        self._tls = tls or ssl.create_default_context()

    async def dial(self, there: WebAddress) -> Connection:
        """Whoever gets it cuts it. Raises: NotReached."""
        for address in (await self._addresses(there))[:ADDRESSES_TRIED]:
            connection = Connection(asyncio.get_running_loop(), there.authority, _PATIENCE, _forgotten)
            is_open = False
            try:
                is_open = await self._connect(connection, there, address)
                if is_open:
                    return connection
            finally:
                if not is_open:
                    connection.cut()
        raise NotReached("its server takes no connection")

    async def _addresses(self, there: WebAddress) -> Sequence[Address]:
        """Looked up once: what is checked is what is dialled. (A name server may answer differently the next time.)"""
        found = (there.literal,) if there.literal is not None else await self._resolve(there.host, there.port)
        if not self._policy.may_dial(there, found):
            raise NotReached("it does not lead to a public address on port 80 (http) or 443 (https)")
        return found

    async def _connect(self, connection: Connection, there: WebAddress, address: Address) -> bool:
        tls, name = (self._tls, there.host) if there.is_tls else (None, None)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: connection, str(address), there.port, ssl=tls, server_hostname=name
                )
        except ssl.SSLError:
            raise NotReached("its server has no valid certificate for that name") from None
        except (OSError, TimeoutError):
            return False
        return True


async def more(connection: Connection) -> None:
    """Until something changed. Raises: EngineFault, when nothing more will come."""
    if connection.failure is not None:
        raise connection.failure
    await connection.wait()


def _forgotten(_: Connection) -> None:
    """Nobody keeps a list of these connections: each is cut where it is used."""
