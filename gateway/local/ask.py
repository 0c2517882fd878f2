"""A small question over HTTP to a server on loopback: is it up, what does it say."""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gateway.local.ports import LOOPBACK


@dataclass(frozen=True)
class Reply:
    """`headers` by their lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


def status_of(port: int, path: str, timeout_seconds: float = 2.0) -> int | None:
    """The status, or None when nobody answers."""
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None


def get(port: int, path: str, *, key: str = "", timeout_seconds: float = 10.0) -> Reply:
    """Raises: OSError, http.client.HTTPException, ValueError."""
    return _ask("GET", port, path, body=None, key=key, timeout_seconds=timeout_seconds)


def post(port: int, path: str, body: Mapping[str, Any], *, key: str, timeout_seconds: float = 60.0) -> Reply:
    """Raises: OSError, http.client.HTTPException, ValueError."""
    return _ask("POST", port, path, body=body, key=key, timeout_seconds=timeout_seconds)


def _ask(method: str, port: int, path: str, *, body: Mapping[str, Any] | None, key: str, timeout_seconds: float) -> Reply:
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_seconds)) as connection:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, headers, json.loads(answer.read()))
