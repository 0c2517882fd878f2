"""Clients that leave: requests on sockets of their own, and when they were closed."""

import json
import socket
import time
from typing import Any

from tests.support.gateway import Customer, Running, Town
from tests.support.stream import open_holds, taken_slots

MODEL = "smollm2-135m-instruct"


def ask(gateway: Running, customer: Customer, script: dict[str, Any], *, stream: bool) -> socket.socket:
    """A request sent on a socket of its own, to be hung up."""
    content = "@engine " + json.dumps(script)
    body = json.dumps({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": content}]}).encode()
    client = socket.create_connection(("127.0.0.1", gateway.port), timeout=10)
    head = f"authorization: Bearer {customer.token}\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + head.encode() + body)
    return client


def hang_up(client: socket.socket) -> int:
    """Returns when, on the clock that the engine's journal uses."""
    at = time.monotonic_ns()
    client.close()
    return at


def nothing_is_taken(faregate: Town) -> bool:
    return open_holds(faregate.redis_url) == 0 and taken_slots(faregate.redis_url) == 0
