"""TCP ports on loopback: which are free, and whether one is taken."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on now; take it soon."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int, host: str = LOOPBACK) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
