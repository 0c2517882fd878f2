"""A small question over HTTP to a server on loopback: is it up, what does it say."""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from gateway.local.ports import LOOPBACK


def status_of(port: int, path: str, timeout_seconds: float = 2.0) -> int | None:
    """The status, or None when nobody answers."""
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None


def get(port: int, path: str, *, key: str, timeout_seconds: float = 10.0) -> tuple[int, dict[str, Any]]:
    """Raises: OSError, http.client.HTTPException, ValueError."""
    return _ask("GET", port, path, body=None, key=key, timeout_seconds=timeout_seconds)


def post(port: int, path: str, body: Mapping[str, Any], *, key: str, timeout_seconds: float = 60.0) -> tuple[int, dict[str, Any]]:
    """Raises: OSError, http.client.HTTPException, ValueError."""
    return _ask("POST", port, path, body=body, key=key, timeout_seconds=timeout_seconds)


def _ask(
    method: str, port: int, path: str, *, body: Mapping[str, Any] | None, key: str, timeout_seconds: float
) -> tuple[int, dict[str, Any]]:
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)) as connection:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
