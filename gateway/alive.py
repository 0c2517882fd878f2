"""A health check for containers, which have no curl: exit code 0 when the address answers 200."""

import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit


def is_well(url: str) -> bool:
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "127.0.0.1", address.port or 80, timeout=2)
    try:
        connection.request("GET", address.path or "/")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if is_well(sys.argv[1]) else 1)
