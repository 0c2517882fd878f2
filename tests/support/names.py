"""A name server on loopback that says what it is told to: real packets, over UDP."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


@dataclass
class NameServer:
    """`records`: by name and type, what it stands for; no entry is NXDOMAIN, an empty one no answer. `mode`: how it fails."""

    records: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    mode: str = "well"  # or `silent`, `servfail`, `garbage`
    port: int = 0
    asked: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, packet: bytes) -> bytes | None:
        self.asked += 1
        question = dns.message.from_wire(packet)
        reply = dns.message.make_response(question)
        if self.mode == "silent":
            return None
        if self.mode == "garbage":
            return b"\x00\x01garbage"
        if self.mode == "servfail":
            reply.set_rcode(dns.rcode.SERVFAIL)
            return reply.to_wire()
        asked = question.question[0]
        kind = dns.rdatatype.to_text(asked.rdtype)
        found = self.records.get((asked.name.to_text(omit_final_dot=True), kind))
        if found is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif found:
            reply.answer.append(dns.rrset.from_text_list(asked.name, 1, "IN", kind, found))
        return reply.to_wire()


class _Protocol(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = self._server.answer(data)
        if reply is not None:
            self._transport.sendto(reply, addr)


@asynccontextmanager
async def name_server(records: Mapping[tuple[str, str], list[str]]) -> AsyncIterator[NameServer]:
    server = NameServer(dict(records))
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Protocol(server), local_addr=("127.0.0.1", 0)
    )
    server.port = transport.get_extra_info("sockname")[1]
    yield server
    transport.close()
