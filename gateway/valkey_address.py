"""Where a Valkey or Redis is, and how to begin to talk to it: the meaning of REDIS_URL."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a `redis://`, `rediss://`, `valkey(s)://` or `unix://` URL points."""

    host: str
    port: int
    path: str | None
    tls: ssl.SSLContext | None
    username: str | None
    password: str | None
    database: int

    @classmethod
    def parse(cls, url: str) -> "Address":
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
            raise ValueError(f"REDIS_URL must begin with redis://, rediss:// or unix://, not {parts.scheme}://")
        path = parts.path if parts.scheme == "unix" else None
        database = options.get("db") or ("" if path else parts.path.strip("/")) or "0"
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 6379,
            path=path,
            tls=_tls(options) if parts.scheme in ("rediss", "valkeys") else None,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            database=int(database),
        )

    async def dial(self, protocol: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        if self.path is not None:
            return (await loop.create_unix_connection(protocol, self.path))[1]
        return (await loop.create_connection(protocol, self.host, self.port, ssl=self.tls))[1]

    def greeting(self) -> list[tuple[str | int, ...]]:
        """What a new connection must say before anything else."""
        commands: list[tuple[str | int, ...]] = []
        if self.password is not None:
            commands.append(("AUTH", *([self.username] if self.username else []), self.password))
        if self.database:
            commands.append(("SELECT", self.database))
        return commands


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
    if options.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
