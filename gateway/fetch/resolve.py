"""Names to addresses, in threads of their own: a client's slow name server must not hold up the look-ups of engines."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from gateway.fetch.public import Address

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
# Look-ups at once; a system's own resolver gives each up after some seconds.
THREADS_MAX = 16


class Resolver:
    """`await resolver(host, port)`: the addresses, in the system's order of preference; none when the name has none.

    asyncio's own look-ups share a few threads with everything else in the process; daemon threads also end with it.
    """

    def __init__(self, threads: int = THREADS_MAX) -> None:
        self._turns = asyncio.Semaphore(threads)

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        await self._turns.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Address]] = loop.create_future()

        def arrived(found: Sequence[Address]) -> None:
            self._turns.release()  # by the thread's end: a caller that leaves does not end it
            if not answer.done():
                answer.set_result(found)

        def look_up() -> None:
            found = _addresses(host, port)
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(arrived, found)

        threading.Thread(target=look_up, name="resolve", daemon=True).start()
        return await answer


def _addresses(host: str, port: int) -> Sequence[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ip_address(where[4][0]) for where in found))
