"""Many calls at once, each on a connection of its own, spread over several gateways."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.gateway import Customer


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` 0: the connection was cut before there was one."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found


async def call(port: int, customer: Customer, body: Any, path: str = "/v1/chat/completions") -> Reply:
    """One call over a plain socket; never raises for what the server does."""
    status, headers, received = 0, dict[str, str](), b""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return Reply(0, {}, b"", whole=False)
    try:
        payload = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {customer.token}\r\nconnection: close\r\n"
        writer.write(f"{head}content-length: {len(payload)}\r\n\r\n".encode() + payload)
        raw = await reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        received = await reader.read()
        return Reply(status, headers, *_unframed(received, headers))
    except (OSError, asyncio.IncompleteReadError):
        return Reply(status, headers, received, whole=False)
    finally:
        writer.close()


def _unframed(received: bytes, headers: dict[str, str]) -> tuple[bytes, bool]:
    if "content-length" in headers:
        return received, len(received) == int(headers["content-length"])
    body = b""
    while b"\r\n" in received:
        size, _, received = received.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body, True
        body, received = body + received[:length], received[length + 2 :]
    return body, False


async def crowd(ports: Sequence[int], customer: Customer, body: Any, count: int) -> list[Reply]:
    """All at once."""
    return await asyncio.gather(*(call(ports[number % len(ports)], customer, body) for number in range(count)))
