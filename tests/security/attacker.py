"""What an attacker has: sockets that send anything, and requests whose engine is steered by the prompt."""

import json
import socket
import time
from collections.abc import Callable
from typing import Any

from tests.journeys.conftest import MODEL
from tests.support.gateway import Customer, Running

HI = [{"role": "user", "content": "hi"}]
CHAT = "/v1/chat/completions"


def head(customer: Customer | None, *lines: str, path: str = CHAT) -> bytes:
    """A POST's head, without the empty line when `lines` are to go on."""
    key = [f"authorization: Bearer {customer.token}"] if customer else []
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: x", *key, *lines, "", ""]).encode()


def chat(**fields: Any) -> bytes:
    return json.dumps({"model": MODEL, "messages": HI, **fields}).encode()


def steered(**script: Any) -> list[dict[str, str]]:
    """Messages that tell the stand-in engine what to do."""
    return [{"role": "user", "content": "@engine " + json.dumps(script)}]


def connect(gateway: Running, receive_buffer: int | None = None) -> socket.socket:
    client = socket.socket()
    if receive_buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(10)
    client.connect(("127.0.0.1", gateway.port))
    return client


def send(gateway: Running, customer: Customer | None, body: bytes, receive_buffer: int | None = None) -> socket.socket:
    """A whole request, and the socket that its answer comes on."""
    client = connect(gateway, receive_buffer)
    client.sendall(head(customer, f"content-length: {len(body)}") + body)
    return client


def talk(gateway: Running, *parts: bytes, pause_seconds: float = 0.05, silence_seconds: float = 0.3) -> bytes:
    """Sends the parts; returns what came until the server closed or fell silent."""
    answer = b""
    with connect(gateway) as client:
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause_seconds)
            client.settimeout(silence_seconds)
            while data := client.recv(65536):
                answer += data
        except OSError:  # cut, or silent
            pass
    return answer


def cpu_seconds(does: Callable[[], object]) -> float:
    """What it takes of the one thread that serves everybody."""
    began = time.process_time()
    does()
    return time.process_time() - began
