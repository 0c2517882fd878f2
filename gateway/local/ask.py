"""A small question over HTTP to a server on loopback: is it up, what does it say."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from gateway.local.ports import LOOPBACK


def status_of(port: int, path: str, timeout_seconds: float = 2.0) -> int | None:
    """The status, or None when nobody answers."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def post(port: int, path: str, body: Mapping[str, Any], *, key: str, timeout_seconds: float = 60.0) -> tuple[int, dict[str, Any]]:
    """POST JSON, get JSON. Raises: OSError, http.client.HTTPException, ValueError."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)
    try:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
